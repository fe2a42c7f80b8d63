//! Floating-point events: from sticky flags of a launch to NumPy's warning at the user's line.
//!
//! At issue, an operation that could raise flags notes the innermost Python frame (file, line, globals) and what the
//! current `errstate` wants. When flags come back, the warning is given for that line, in program order. Where
//! `errstate` asks for anything but a warning, or warnings are recorded or errors, [`Mood::AtOnce`] makes the
//! operation finish at its line.

use std::collections::VecDeque;

use legate_runtime::Sequence;
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning};
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
///
/// Python code may run in the middle of any call into Python (a finaliser), so none is made while a lock is held.
pub(crate) struct Origins {
    waiting: Mutex<VecDeque<Origin>>,
    contextvar: Py<PyAny>,
    state_reader: Py<PyAny>,
    warnings: Py<PyDict>,
    last_state: Mutex<Option<(Py<PyAny>, Mood)>>,
    last_watch: Mutex<Option<Watch>>,
}

/// What decides whether somebody would notice a late warning, and the answer. The objects are held: an address alone may come to
/// mean another object.
struct Watch {
    show: Py<PyAny>,
    show_message: Py<PyAny>,
    filters: Py<PyAny>,
    first: Option<Py<PyAny>>,
    length: usize,
    answer: bool,
}

impl Watch {
    /// The answer, if nothing has changed that decides it.
    fn answer_now(&self, module: &Bound<'_, PyDict>) -> Option<bool> {
        let py = module.py();
        let is_still = |name, object: &Py<PyAny>| frames::identity_in(module, name) == object.as_ptr() as usize;
        let same = is_still(intern!(py, "showwarning"), &self.show)
            && is_still(intern!(py, "_showwarnmsg_impl"), &self.show_message)
            && is_still(intern!(py, "filters"), &self.filters)
            && frames::list_head(self.filters.bind(py))?
                == (self.length, self.first.as_ref().map_or(0, |first| first.as_ptr() as usize));
        same.then_some(self.answer)
    }
}

impl Origins {
    /// Finds NumPy's error state and Python's warning filters.
    pub(crate) fn new(numpy: &Bound<'_, PyModule>) -> PyResult<Origins> {
        let py = numpy.py();
        let umath = py.import("numpy._core.umath")?;
        Ok(Origins {
            waiting: Mutex::new(VecDeque::new()),
            contextvar: umath.getattr("_extobj_contextvar")?.unbind(),
            state_reader: umath.getattr("_get_extobj_dict")?.unbind(),
            warnings: py.import("warnings")?.dict().unbind(),
            last_state: Mutex::new(None),
            last_watch: Mutex::new(None),
        })
    }

    /// The current mood.
    pub(crate) fn mood(&self, py: Python<'_>) -> PyResult<Mood> {
        // A thread beside the program does on the host what it can.
        if !crate::shards::in_program() {
            return Ok(Mood::Host);
        }
        let state = frames::context_value(self.contextvar.bind(py))?;
        let known = self
            .last_state
            .lock()
            .as_ref()
            .and_then(|(known, mood)| (known.as_ptr() == state.as_ptr()).then_some(*mood));
        let mood = match known {
            Some(mood) => mood,
            None => {
                let mood = self.read_state(py)?;
                let before = self.last_state.lock().replace((state.unbind(), mood));
                drop(before);
                mood
            }
        };
        match mood {
            Mood::Warn(flags) if self.is_watched(py)? => Ok(Mood::AtOnce(flags)),
            Mood::Silent | Mood::Warn(_) | Mood::Host | Mood::AtOnce(_) => Ok(mood),
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
    fn is_watched(&self, py: Python<'_>) -> PyResult<bool> {
        let module = self.warnings.bind(py);
        let known = self.last_watch.lock().as_ref().and_then(|watch| watch.answer_now(module));
        if let Some(answer) = known {
            return Ok(answer);
        }
        let show = needed(module.get_item(intern!(py, "showwarning"))?)?;
        let show_message = needed(module.get_item(intern!(py, "_showwarnmsg_impl"))?)?;
        let filters = needed(module.get_item(intern!(py, "filters"))?)?;
        let length = filters.len()?;
        let first = if length == 0 { None } else { Some(filters.get_item(0)?) };
        let mut answer = !is_own(&show)? || !is_own(&show_message)?;
        for filter in filters.try_iter()? {
            let action = filter?.get_item(0)?;
            answer |= action.cast::<PyString>().is_ok_and(|text| text == "error");
        }
        let watch = Watch {
            show: show.unbind(),
            show_message: show_message.unbind(),
            filters: filters.unbind(),
            first: first.map(Bound::unbind),
            length,
            answer,
        };
        let before = self.last_watch.lock().replace(watch);
        drop(before);
        Ok(answer)
    }

    /// Notes where a launch was issued.
    pub(crate) fn note(&self, py: Python<'_>, sequence: Sequence, flags: u8, name: &'static str, completed: Sequence) {
        let place = frames::place(py);
        let mut over = Vec::new();
        let mut waiting = self.waiting.lock();
        while waiting.front().is_some_and(|origin| origin.sequence <= completed) {
            over.extend(waiting.pop_front());
        }
        if let Some(place) = place {
            waiting.push_back(Origin { sequence, flags, name, place });
        }
        drop(waiting);
        drop(over);
    }

    /// Forgets where launches up to `last` were issued, all done and told of: a place keeps its module's variables alive.
    pub(crate) fn forget(&self, last: Sequence) {
        let mut waiting = self.waiting.lock();
        let later = waiting.iter().position(|origin| origin.sequence > last).unwrap_or(waiting.len());
        let over: Vec<Origin> = waiting.drain(..later).collect();
        drop(waiting);
        drop(over);
    }

    fn take(&self, sequence: Sequence) -> Option<Origin> {
        let mut waiting = self.waiting.lock();
        let position = waiting.iter().position(|origin| origin.sequence == sequence)?;
        waiting.remove(position)
    }
}

/// A name that every `warnings` has.
fn needed(found: Option<Bound<'_, PyAny>>) -> PyResult<Bound<'_, PyAny>> {
    found.ok_or_else(|| PyRuntimeError::new_err("no warnings"))
}

/// Whether a function is Python's own way to show a warning.
fn is_own(show: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = show.py();
    match show.getattr_opt(intern!(py, "__code__"))? {
        Some(_) => Ok(show.getattr(intern!(py, "__module__"))?.eq("warnings")?),
        None => Ok(false),
    }
}

/// Gives the warnings of all events so far.
pub(crate) fn warn(py: Python<'_>, shim: &Shim) -> PyResult<()> {
    for event in shim.runtime.backend().take_events() {
        let Some(origin) = shim.origins.take(event.sequence) else { continue };
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
            place.file(py)?,
            place.line(py).into_pyobject(py)?.into_any(),
            module.unwrap_or_else(|| py.None().into_bound(py)),
            registry,
        ],
    )?;
    py.import("warnings")?.getattr("warn_explicit")?.call1(arguments)?;
    Ok(())
}
