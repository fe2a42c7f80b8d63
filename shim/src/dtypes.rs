//! The dtypes that are computed natively, recognised by their descriptor's address.
//!
//! NumPy's built-in, native-byte-order numeric descriptors are singletons: their address is their identity. Every other
//! fixed-width dtype may be stored in a deferred array, but operations on it run on the host.

use legate_kernels::program::{Element, Number};
use pyo3::prelude::*;

/// A built-in numeric dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Native {
    /// How our own loops name it; `None` for long double and its complex.
    pub(crate) number: Option<Number>,
    /// Element size in bytes.
    pub(crate) item_bytes: usize,
    /// NumPy's kind letter: b, i, u, f, c.
    pub(crate) kind: u8,
    /// NumPy's type character.
    pub(crate) letter: u8,
}

/// Type characters of the numeric dtypes, with the name of each in our own loops.
const NUMERIC: [(char, Option<Number>); 18] = [
    ('?', Some(Number::Bool)),
    ('b', Some(Number::I8)),
    ('B', Some(Number::U8)),
    ('h', Some(Number::I16)),
    ('H', Some(Number::U16)),
    ('i', Some(Number::I32)),
    ('I', Some(Number::U32)),
    ('l', Some(Number::I64)),
    ('L', Some(Number::U64)),
    ('q', Some(Number::I64)),
    ('Q', Some(Number::U64)),
    ('e', Some(Number::F16)),
    ('f', Some(Number::F32)),
    ('d', Some(Number::F64)),
    ('g', None),
    ('F', Some(Number::C64)),
    ('D', Some(Number::C128)),
    ('G', None),
];

/// All native dtypes, by descriptor address and by letter.
pub(crate) struct Dtypes {
    /// Few, so that a scan is the fastest look-up.
    by_address: Vec<(usize, Native)>,
    /// In the order of `by_address`.
    descriptors: Vec<Py<PyAny>>,
    /// Where a letter's is among them.
    by_letter: [u8; 128],
}

impl Dtypes {
    /// Asks the host NumPy for its singletons.
    pub(crate) fn new(numpy: &Bound<'_, PyModule>) -> PyResult<Dtypes> {
        let make = numpy.getattr("dtype")?;
        let mut by_address = Vec::new();
        let mut descriptors = Vec::new();
        let mut by_letter = [u8::MAX; 128];
        for (letter, number) in NUMERIC {
            let descr = make.call1((letter.to_string(),))?;
            let kind: char = descr.getattr("kind")?.extract()?;
            let item_bytes = descr.getattr("itemsize")?.extract()?;
            let native = Native { number, item_bytes, kind: kind as u8, letter: letter as u8 };
            by_letter[letter as usize] = descriptors.len() as u8;
            by_address.push((descr.as_ptr() as usize, native));
            descriptors.push(descr.unbind());
        }
        Ok(Dtypes { by_address, descriptors, by_letter })
    }

    /// The native dtype with this descriptor address.
    pub(crate) fn at(&self, address: usize) -> Option<Native> {
        self.by_address.iter().find(|(known, _)| *known == address).map(|(_, native)| *native)
    }

    /// The kind of the native dtype with this type character.
    pub(crate) fn kind(&self, letter: u8) -> Option<u8> {
        self.by_address.iter().find(|(_, native)| native.letter == letter).map(|(_, native)| native.kind)
    }

    /// The descriptor with this type character.
    pub(crate) fn descr<'py>(&self, py: Python<'py>, letter: u8) -> &Bound<'py, PyAny> {
        self.descriptors[usize::from(self.by_letter[usize::from(letter)])].bind(py)
    }
}

/// An element from its bytes (at most 32).
pub(crate) fn element(bytes: &[u8]) -> Element {
    let mut element = Element([0; 32]);
    element.0[..bytes.len()].copy_from_slice(bytes);
    element
}
