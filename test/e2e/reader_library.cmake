# Traces read by other programs: libkarst-reader, and the Python module.
e2e_methods(reader_library reader_library)
