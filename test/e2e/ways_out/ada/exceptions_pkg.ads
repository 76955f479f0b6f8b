package Exceptions_Pkg is
   procedure Catches;
   pragma No_Inline (Catches);
end Exceptions_Pkg;
