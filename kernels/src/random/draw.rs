//! What can be drawn, as values: NumPy's draws by name and parameters. How each is made is decided in `fill`.

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
