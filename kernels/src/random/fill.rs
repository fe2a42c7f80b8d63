//! One draw of a number of items, from the request to the way it is made.
//!
//! [`Order`] decides which sampler and which way of sharing serve a draw; [`Fill`] is the result, which callers drive. It
//! promises NumPy's items and state, whoever writes which part; it starts no threads.

#![expect(unsafe_code, reason = "callers hand in raw memory")]

use std::ops::Range;

use super::attempt::Sampler;
use super::bounded::{Bounded, Lemire, Masked, Rule, Tries, largest};
use super::cursor::Unit;
use super::draw::{Bounding, Draw, Finish};
use super::engine::State;
use super::fixed::{Bits, Doubles, EachUnit, Fixed, halves, upper24, upper53};
use super::polar::Polar;
use super::relay::{Relay, Work};
use super::turns::Turns;
use super::ziggurat::{Exponential, ExponentialF32, Normal, NormalF32};

/// Words of a stretch that one worker takes at a time: its values stay in L2.
const STRETCH_WORDS: u64 = 8192;

/// One draw of a number of items.
pub struct Fill {
    state: State,
    items: u64,
    item_bytes: usize,
    way: Way,
}

enum Way {
    Slices(Box<dyn Fixed>),
    Together(Box<dyn Work>),
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
        Fill { state, items, item_bytes, way }
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
            Way::Slices(draw) => {
                let mut reader = draw.reader(&self.state, &self.state.engine, 0, range.start);
                // SAFETY: the caller's promise.
                unsafe { draw.fill(&mut *reader, (range.end - range.start) as usize, out) }
            }
            Way::Together(_) => panic!("this draw has no slices: its items are made together"),
        }
    }

    /// The draw and its state, if any range can be filled by itself.
    pub(super) fn fixed(&self) -> Option<(&dyn Fixed, &State)> {
        match &self.way {
            Way::Slices(draw) => Some((&**draw, &self.state)),
            Way::Together(_) => None,
        }
    }

    /// Takes part in writing all items from `out`, until each is written or in the hands of another caller. Any number of
    /// threads may call it; when all calls have returned, all items are written.
    ///
    /// # Safety
    /// `out` is the same in every call, valid for writing all items and aligned for them, and nobody else accesses them
    /// until every call has returned. A draw with slices is worked on by one caller.
    pub unsafe fn work(&self, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.work_on(out, &(0..self.items)) }
    }

    /// As [`Fill::work`], but only the items of `kept` are written, each at its place among all; the others are skipped, or made
    /// and left out where only making them tells where they end. The state afterwards is that after all items.
    ///
    /// # Safety
    /// As for [`Fill::work`], of the kept items, which are the same in every call.
    pub unsafe fn work_on(&self, out: *mut u8, kept: &Range<u64>) {
        match &self.way {
            Way::Slices(_) => {
                let place = out.wrapping_add(kept.start as usize * self.item_bytes);
                // SAFETY: the caller's promise.
                unsafe { self.slice(kept.clone(), place) }
            }
            // SAFETY: the caller's promise.
            Way::Together(work) => unsafe { work.work(out, kept) },
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
        if range == largest::<U>() {
            return self.fixed(finish);
        }
        match bounding {
            Bounding::Multiply => self.tried(Lemire::new(range), finish),
            Bounding::Mask => self.tried(Masked::new(range), finish),
        }
    }

    fn tried<U: Bounded, T: Copy + 'static>(
        self,
        rule: impl Rule<U>,
        finish: impl Fn(U) -> T + Send + Sync + 'static,
    ) -> Way {
        if rule.rejected() == 0.0 {
            self.fixed(move |unit| finish(rule.value(unit).0))
        } else {
            self.sampled(Tries::new(rule), finish)
        }
    }
}
