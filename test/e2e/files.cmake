# karst run --system files,net,time, karst files: files, sockets and sleeps.
e2e_methods(files files)
e2e_methods(files_guest files_guest)
