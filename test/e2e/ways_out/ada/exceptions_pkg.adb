--  Ada's exceptions: raised, passed through C and through a handler of another, caught.
package body Exceptions_Pkg is
   Failure : exception;
   procedure Handled;
   pragma Import (C, Handled, "handled");
   type Call is access procedure;
   pragma Convention (C, Call);
   procedure C_Passes (To : Call);
   pragma Import (C, C_Passes, "c_passes");

   procedure Fails;
   pragma Convention (C, Fails);
   pragma No_Inline (Fails);
   procedure Fails is
   begin
      raise Failure;
   end Fails;

   procedure Passes;
   pragma No_Inline (Passes);
   procedure Passes is
   begin
      C_Passes (Fails'Access);
   exception
      when Constraint_Error => Handled;
   end Passes;

   procedure Catches is
   begin
      Passes;
   exception
      when Failure => Handled;
   end Catches;
end Exceptions_Pkg;
