# karst/karst.h, and the moments that traces keep.
e2e_methods(moments api moments)
