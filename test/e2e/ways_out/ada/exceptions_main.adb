with Exceptions_Pkg;
procedure Exceptions_Main is
begin
   Exceptions_Pkg.Catches;
   Exceptions_Pkg.Catches;
end Exceptions_Main;
