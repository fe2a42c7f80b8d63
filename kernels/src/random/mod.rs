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

#![expect(unsafe_code, reason = "callers hand in raw memory")]

mod attempt;
mod bounded;
mod claims;
mod cursor;
mod engine;
mod fixed;
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

use std::ops::Range;

use attempt::Sampler;
use bounded::{Bounded, Lemire, Masked};
use cursor::Unit;
use fixed::{Bits, Doubles, EachUnit, Fixed, halves, upper24, upper53};
use polar::Polar;
use relay::{Relay, Work};
use turns::Turns;
use ziggurat::{Exponential, ExponentialF32, Normal, NormalF32};

pub use engine::{Engine, SpareHalf, State};
pub use mt19937::{Mt19937, WORDS as MT19937_WORDS};
pub use pcg64::{Pcg64, Permutation};
pub use philox::Philox;
pub use sfc64::Sfc64;

/// Words of a stretch that one worker takes at a time: its values stay in L2.
const STRETCH_WORDS: u64 = 8192;

/// What is done to a standard deviate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finish {
    /// Nothing.
    Standard,
    /// `scale * deviate`.
    Scaled {
        /// The factor.
        scale: f64,
    },
    /// `location + scale * deviate`.
    Affine {
        /// The summand.
        location: f64,
        /// The factor.
        scale: f64,
    },
    /// `exp(location + scale * deviate)`.
    LogAffine {
        /// The summand.
        location: f64,
        /// The factor.
        scale: f64,
    },
}

/// How integers are kept in bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounding {
    /// Lemire's multiplication, as `Generator.integers`.
    Multiply,
    /// Rejection under a mask, as `RandomState.randint`.
    Mask,
}

/// A draw: what each item is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Doubles in [0, 1) (`random`, `uniform`).
    Uniform(Finish),
    /// Singles in [0, 1).
    UniformF32,
    /// Normal doubles by the ziggurat (`standard_normal`, `normal`, `lognormal`).
    Normal(Finish),
    /// Standard normal singles.
    NormalF32,
    /// Exponential doubles by the ziggurat.
    Exponential(Finish),
    /// Standard exponential singles by the ziggurat.
    ExponentialF32,
    /// Exponential doubles by inversion, `-log1p(-u)`.
    InverseExponential,
    /// Exponential singles by inversion.
    InverseExponentialF32,
    /// The exponential doubles of `RandomState`, `-log(1 - u)`.
    LegacyExponential(Finish),
    /// The normal doubles of `RandomState`, by the polar method.
    LegacyNormal(Finish),
    /// Integers `low..=low + range`, wrapping.
    Integers {
        /// Size of an item: 1, 2, 4 or 8 bytes.
        bytes: usize,
        /// Lowest value, in two's complement.
        low: u64,
        /// Highest value minus lowest: at least 1, at most the largest unsigned integer of this size.
        range: u64,
        /// How.
        bounding: Bounding,
    },
    /// Booleans, both equally likely.
    Booleans,
}

/// One draw of a number of items.
pub struct Fill {
    state: State,
    items: u64,
    way: Way,
}

enum Way {
    Slices(Box<dyn Fixed>),
    Together(Box<dyn Work>),
}

impl Draw {
    /// Size of an item in bytes.
    pub fn item_bytes(&self) -> usize {
        match self {
            Draw::Uniform(_)
            | Draw::Normal(_)
            | Draw::Exponential(_)
            | Draw::InverseExponential
            | Draw::LegacyExponential(_)
            | Draw::LegacyNormal(_) => 8,
            Draw::UniformF32 | Draw::NormalF32 | Draw::ExponentialF32 | Draw::InverseExponentialF32 => 4,
            Draw::Integers { bytes, .. } => *bytes,
            Draw::Booleans => 1,
        }
    }
}

impl Fill {
    /// The draw of `items` items from `state`.
    pub fn new(draw: &Draw, state: State, items: u64) -> Fill {
        Fill::with_stretches(draw, state, items, STRETCH_WORDS)
    }

    /// The same with another length of stretch: a positive, even number of 64-bit words. It decides how work is shared,
    /// never a result; tests take short ones.
    pub fn with_stretches(draw: &Draw, state: State, items: u64, words: u64) -> Fill {
        assert!(words > 0 && words.is_multiple_of(2), "stretches of {words} words");
        let item_bytes = draw.item_bytes();
        let doubles = Doubles::of_engine(&state.engine);
        let way = Order { state: state.clone(), items, item_bytes, words, doubles }.way(draw);
        Fill { state, items, way }
    }

    /// Whether any range can be filled by itself; else workers make all items together.
    pub fn slices(&self) -> bool {
        matches!(self.way, Way::Slices(_))
    }

    /// Writes the items of `range` one after the other from `out`.
    ///
    /// # Safety
    /// [`Fill::slices`] holds; `out` is valid for writing these items and aligned for them, and nobody else accesses them
    /// meanwhile.
    ///
    /// # Panics
    /// If the draw has no slices.
    pub unsafe fn slice(&self, range: Range<u64>, out: *mut u8) {
        match &self.way {
            // SAFETY: the caller's promise.
            Way::Slices(draw) => unsafe { draw.fill(&self.state, &self.state.engine, 0, range, out) },
            Way::Together(_) => panic!("this draw has no slices: its items are made together"),
        }
    }

    /// Takes part in writing all items from `out`, until each is written or in the hands of another caller. Any number of
    /// threads may call it; when all calls have returned, all items are written.
    ///
    /// # Safety
    /// `out` is the same in every call, valid for writing all items and aligned for them, and nobody else accesses them
    /// until every call has returned. A draw with slices is worked on by one caller.
    pub unsafe fn work(&self, out: *mut u8) {
        match &self.way {
            // SAFETY: the caller's promise.
            Way::Slices(_) => unsafe { self.slice(0..self.items, out) },
            // SAFETY: the caller's promise.
            Way::Together(work) => unsafe { work.work(out) },
        }
    }

    /// The state after the last item: at once for a draw with slices, else once a call of [`Fill::work`] has returned.
    pub fn after(&self) -> Option<State> {
        match &self.way {
            Way::Slices(draw) => {
                let units = draw.units(self.items);
                Some(self.state.after(units, draw.unit_bytes(), &self.state.engine, 0))
            }
            Way::Together(work) => work.after(),
        }
    }
}

/// What is asked for, on its way to being a [`Way`].
struct Order {
    state: State,
    items: u64,
    item_bytes: usize,
    /// Length of a stretch.
    words: u64,
    doubles: Doubles,
}

/// Evaluates `$way` with `$then` standing for what `$finish` does to a deviate.
macro_rules! finishing {
    ($finish:expr, $then:ident => $way:expr) => {
        match $finish {
            Finish::Standard => {
                let $then = |deviate: f64| deviate;
                $way
            }
            Finish::Scaled { scale } => {
                let $then = move |deviate: f64| scale * deviate;
                $way
            }
            Finish::Affine { location, scale } => {
                let $then = move |deviate: f64| location + scale * deviate;
                $way
            }
            Finish::LogAffine { location, scale } => {
                let $then = move |deviate: f64| (location + scale * deviate).exp();
                $way
            }
        }
    };
}

/// Evaluates `$way` with `$double` standing for the engine's function from a word to a double in [0, 1).
macro_rules! with_doubles {
    ($doubles:expr, $double:ident => $way:expr) => {
        match $doubles {
            Doubles::Upper53 => {
                let $double = upper53;
                $way
            }
            Doubles::Halves => {
                let $double = halves;
                $way
            }
        }
    };
}

impl Order {
    fn way(self, draw: &Draw) -> Way {
        let doubles = self.doubles;
        match *draw {
            Draw::Uniform(finish) => with_doubles!(doubles, double => finishing!(finish, then => {
                self.fixed(move |unit: u64| then(double(unit)))
            })),
            Draw::UniformF32 => self.fixed(upper24),
            Draw::InverseExponential => with_doubles!(doubles, double => {
                self.fixed(move |unit: u64| -(-double(unit)).ln_1p())
            }),
            // NumPy takes this logarithm in double.
            Draw::InverseExponentialF32 => self.fixed(|unit: u32| -f64::from(-upper24(unit)).ln_1p() as f32),
            Draw::LegacyExponential(finish) => with_doubles!(doubles, double => finishing!(finish, then => {
                self.fixed(move |unit: u64| then(-(1.0 - double(unit)).ln()))
            })),
            Draw::Booleans => self.fixed_draw(Box::new(Bits)),
            Draw::Normal(finish) => finishing!(finish, then => self.sampled(Normal { doubles }, then)),
            Draw::NormalF32 => self.sampled(NormalF32, |deviate| deviate),
            Draw::Exponential(finish) => finishing!(finish, then => self.sampled(Exponential { doubles }, then)),
            Draw::ExponentialF32 => self.sampled(ExponentialF32, |deviate| deviate),
            Draw::LegacyNormal(finish) => finishing!(finish, then => self.polar(then)),
            Draw::Integers { bytes, low, range, bounding } => match bytes {
                1 => self.integers(range, bounding, move |value: u8| (low as u8).wrapping_add(value)),
                2 => self.integers(range, bounding, move |value: u16| (low as u16).wrapping_add(value)),
                4 => self.integers(range, bounding, move |value: u32| (low as u32).wrapping_add(value)),
                _ if range <= u64::from(u32::MAX) => {
                    self.integers(range, bounding, move |value: u32| low.wrapping_add(u64::from(value)))
                }
                _ => self.integers(range, bounding, move |value: u64| low.wrapping_add(value)),
            },
        }
    }

    fn fixed<U: Unit, T: Copy + 'static>(self, map: impl Fn(U) -> T + Send + Sync + 'static) -> Way {
        self.fixed_draw(Box::new(EachUnit::new(map)))
    }

    fn fixed_draw(self, draw: Box<dyn Fixed>) -> Way {
        if self.state.engine.jumps() {
            Way::Slices(draw)
        } else {
            Way::Together(Box::new(Turns::new(draw, self.item_bytes, self.state, self.items, self.words)))
        }
    }

    fn sampled<S: Sampler, T: Copy + 'static>(
        self,
        sampler: S,
        finish: impl Fn(S::Value) -> T + Send + Sync + 'static,
    ) -> Way {
        let nothing_spare = |_: &mut State, _| ();
        Way::Together(Box::new(Relay::new(sampler, finish, nothing_spare, self.state, None, self.items, self.words)))
    }

    fn polar(mut self, finish: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Way {
        let waiting = if self.items > 0 { self.state.spare_normal.take() } else { None };
        let keep_spare = |state: &mut State, value| state.spare_normal = Some(value);
        let sampler = Polar { doubles: self.doubles };
        Way::Together(Box::new(Relay::new(sampler, finish, keep_spare, self.state, waiting, self.items, self.words)))
    }

    fn integers<U: Bounded, T: Copy + 'static>(
        self,
        range: u64,
        bounding: Bounding,
        finish: impl Fn(U) -> T + Send + Sync + 'static,
    ) -> Way {
        if range == bounded::largest::<U>() {
            return self.fixed(finish);
        }
        match bounding {
            Bounding::Multiply => {
                let sampler = Lemire::<U>::new(range);
                if sampler.accepts_all() {
                    self.fixed(move |unit| finish(sampler.value(unit).0))
                } else {
                    self.sampled(sampler, finish)
                }
            }
            Bounding::Mask => {
                let sampler = Masked::<U>::new(range);
                if sampler.accepts_all() {
                    self.fixed(move |unit| finish(sampler.value(unit).0))
                } else {
                    self.sampled(sampler, finish)
                }
            }
        }
    }
}
