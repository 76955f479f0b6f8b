// The program's environment, as far as it is ours.
#pragma once

namespace karst::runtime {

/// Takes KARST_OPTIONS, our part of LD_PRELOAD and the variables by which annotated programs find us out of
/// `environment` (as passed to main; may be null), so that programs that this one starts are loaded without us. Before
/// anyone else reads it.
void hide_from_children(char** environment);

}  // namespace karst::runtime
