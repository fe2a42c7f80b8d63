//! NumPy's random streams, filled by any number of workers.
//!
//! A [`Fill`] is one draw of a number of items from a bit generator's [`State`]: it writes NumPy's very items, whoever
//! writes which part of them, and knows NumPy's state afterwards. Draws of fixed consumption on an engine that jumps are
//! filled in [`Fill::slice`]s of any range at any time, and their state afterwards is known at once. All others are made
//! together by the workers that call [`Fill::work`].
//!
//! No threads are started here, and nothing is known of Python or of the runtime. Draws whose parameters are arrays, or
//! that are serial by nature (`shuffle`, `gamma`, ...), are not here.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `pcg64`, `philox`, `sfc64`, `mt19937`, `engine` | bit generators |
//! | `cursor` | a reading position, in units of 1 to 8 bytes |
//! | `fixed` | draws of fixed consumption |
//! | `attempt`, `ziggurat`, `polar`, `bounded` | draws that reject |
//! | `claims`, `turns`, `relay` | how workers share a draw |
//! | `draw`, `fill` | what can be asked for, and how it is served |
//! | `generate` | draws as inner loops of fused programs |

mod attempt;
mod bounded;
mod claims;
mod cursor;
mod draw;
mod engine;
mod fill;
mod fixed;
mod generate;
mod level;
mod mt19937;
mod pcg64;
mod philox;
mod polar;
mod relay;
mod sfc64;
#[cfg(test)]
mod tests;
mod turns;
mod ziggurat;
mod ziggurat_tables;

pub use draw::{Bounding, Draw, Finish};
pub use engine::{Engine, SpareHalf, State};
pub use fill::Fill;
pub use mt19937::{Mt19937, WORDS as MT19937_WORDS};
pub use pcg64::{Pcg64, Permutation};
pub use philox::Philox;
pub use sfc64::Sfc64;
