//! Floating-point events: from sticky flags of a launch to NumPy's warning at the user's line.
//!
//! At issue, an operation that could raise flags notes the innermost Python frame (file, line, globals) and what the
//! current `errstate` wants. When flags come back, the warning is given for that line, in program order. Where
//! `errstate` asks for anything but a warning, or warnings are recorded or errors, [`Mood::AtOnce`] makes the
//! operation finish at its line.

use std::collections::VecDeque;

use legate_runtime::Sequence;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::frames;
use crate::state::Shim;

/// The kinds of events: flag bit, NumPy's name in `errstate`, NumPy's words. In the order NumPy reports them.
const KINDS: [(u8, &str, &str); 4] = [
    (legate_kernels::execute::DIVIDE_BY_ZERO, "divide", "divide by zero"),
    (legate_kernels::execute::OVERFLOW, "over", "overflow"),
    (legate_kernels::execute::UNDERFLOW, "under", "underflow"),
    (legate_kernels::execute::INVALID, "invalid", "invalid value"),
];

/// How events must be treated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Nobody wants to know.
    Silent,
    /// Warn later, for these flags.
    Warn(u8),
    /// Run on the host at this line: `errstate` raises, calls, prints or logs.
    Host,
    /// Finish at this line, then warn: warnings are recorded, shown by the user's function, or errors.
    AtOnce(u8),
}

/// Where a launch was issued.
struct Origin {
    sequence: Sequence,
    flags: u8,
    name: &'static str,
    place: frames::Place,
}

/// Origins of launches that may still report, and the ways to learn the current mood.
pub(crate) struct Origins {
    waiting: VecDeque<Origin>,
    contextvar: Py<PyAny>,
    state_reader: Py<PyAny>,
    warnings: Py<PyDict>,
    show_original: (usize, usize),
    last_state: Option<(Py<PyAny>, Mood)>,
    last_filters: (usize, usize, usize),
    filters_raise: bool,
}

impl Origins {
    /// Finds NumPy's error state and Python's warning filters.
    pub(crate) fn new(numpy: &Bound<'_, PyModule>) -> PyResult<Origins> {
        let py = numpy.py();
        let umath = py.import("numpy._core.umath")?;
        let warnings = py.import("warnings")?.dict();
        let address = |name: &str| -> PyResult<usize> {
            Ok(warnings.get_item(name)?.map_or(0, |object| object.as_ptr() as usize))
        };
        Ok(Origins {
            waiting: VecDeque::new(),
            contextvar: umath.getattr("_extobj_contextvar")?.unbind(),
            state_reader: umath.getattr("_get_extobj_dict")?.unbind(),
            show_original: (address("_showwarning_orig")?, address("_showwarnmsg_impl")?),
            warnings: warnings.unbind(),
            last_state: None,
            last_filters: (0, 0, 0),
            filters_raise: false,
        })
    }

    /// The current mood.
    pub(crate) fn mood(&mut self, py: Python<'_>) -> PyResult<Mood> {
        let state = frames::context_value(self.contextvar.bind(py))?;
        let mood = match &self.last_state {
            Some((known, mood)) if known.as_ptr() == state.as_ptr() => *mood,
            Some(_) | None => {
                let mood = self.read_state(py)?;
                self.last_state = Some((state.unbind(), mood));
                mood
            }
        };
        match mood {
            Mood::Warn(flags) if self.is_watched(py)? => Ok(Mood::AtOnce(flags)),
            other => Ok(other),
        }
    }

    fn read_state(&self, py: Python<'_>) -> PyResult<Mood> {
        let state = self.state_reader.bind(py).call0()?;
        let mut flags = 0;
        for (bit, name, _) in KINDS {
            let wanted: String = state.get_item(name)?.extract()?;
            match wanted.as_str() {
                "ignore" => {}
                "warn" => flags |= bit,
                _ => return Ok(Mood::Host),
            }
        }
        Ok(if flags == 0 { Mood::Silent } else { Mood::Warn(flags) })
    }

    /// Whether somebody would notice if a warning came late: recorded, shown by another function, or an error.
    fn is_watched(&mut self, py: Python<'_>) -> PyResult<bool> {
        let module = self.warnings.bind(py);
        let show = module.get_item(intern!(py, "showwarning"))?.map_or(0, |object| object.as_ptr() as usize);
        let show_message = module.get_item(intern!(py, "_showwarnmsg_impl"))?.map_or(0, |object| object.as_ptr() as usize);
        if (show, show_message) != self.show_original {
            return Ok(true);
        }
        let Some(filters) = module.get_item(intern!(py, "filters"))? else { return Ok(false) };
        let first = if filters.len()? == 0 { 0 } else { filters.get_item(0)?.as_ptr() as usize };
        let identity = (filters.as_ptr() as usize, filters.len()?, first);
        if identity != self.last_filters {
            self.last_filters = identity;
            self.filters_raise = false;
            for filter in filters.try_iter()? {
                let action = filter?.get_item(0)?;
                self.filters_raise |= action.cast::<PyString>().is_ok_and(|text| text == "error");
            }
        }
        Ok(self.filters_raise)
    }

    /// Notes where a launch was issued.
    pub(crate) fn note(&mut self, py: Python<'_>, sequence: Sequence, flags: u8, name: &'static str, completed: Sequence) {
        while self.waiting.front().is_some_and(|origin| origin.sequence <= completed) {
            self.waiting.pop_front();
        }
        if let Some(place) = frames::place(py) {
            self.waiting.push_back(Origin { sequence, flags, name, place });
        }
    }
}

/// Gives the warnings of all events so far.
pub(crate) fn warn(py: Python<'_>, shim: &Shim) -> PyResult<()> {
    for event in shim.runtime.backend().take_events() {
        let found = {
            let mut origins = shim.origins.lock();
            let position = origins.waiting.iter().position(|origin| origin.sequence == event.sequence);
            position.and_then(|position| origins.waiting.remove(position))
        };
        let Some(origin) = found else { continue };
        for (bit, _, words) in KINDS {
            if event.flags & origin.flags & bit != 0 {
                warn_at(py, &format!("{words} encountered in {}", origin.name), &origin.place)?;
            }
        }
    }
    Ok(())
}

/// `warnings.warn_explicit` for a noted place.
fn warn_at(py: Python<'_>, text: &str, place: &frames::Place) -> PyResult<()> {
    let globals = place.globals.bind(py).cast::<PyDict>()?;
    let registry = match globals.get_item("__warningregistry__")? {
        Some(registry) => registry,
        None => {
            let registry = PyDict::new(py).into_any();
            globals.set_item("__warningregistry__", &registry)?;
            registry
        }
    };
    let module = globals.get_item("__name__")?;
    let category = py.get_type::<PyRuntimeWarning>();
    let arguments = PyTuple::new(
        py,
        [
            PyString::new(py, text).into_any(),
            category.into_any(),
            place.file.bind(py).clone(),
            place.line.into_pyobject(py)?.into_any(),
            module.unwrap_or_else(|| py.None().into_bound(py)),
            registry,
        ],
    )?;
    py.import("warnings")?.getattr("warn_explicit")?.call1(arguments)?;
    Ok(())
}
