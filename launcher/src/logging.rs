//! What is logged, by area and level, and the launcher's own part of it.
//!
//! Promises that `info,binding=debug` means the same here and in `legate.logging` on Python's side, and that each line is written
//! whole. Does not decide where standard error leads.

use std::fmt;

/// Levels, from the quietest on.
pub(crate) const LEVELS: &[&str] = &["none", "error", "warning", "info", "debug"];
/// Areas that log something.
pub(crate) const AREAS: &[&str] = &["launcher", "binding", "runtime"];
/// The level where nobody says anything.
const USUAL: usize = 2;

/// The level of each area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    areas: Vec<usize>,
    /// Areas that were named, but log nothing: those of other programs' runtimes.
    strangers: Vec<String>,
}

impl Levels {
    /// Reads `LEVEL`, `area=LEVEL`, or several with commas between them; a later one wins.
    pub(crate) fn read(text: &str) -> Result<Levels, String> {
        let mut levels = Levels { areas: vec![USUAL; AREAS.len()], strangers: Vec::new() };
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (area, word) = item.split_once('=').map_or((None, item), |(area, word)| (Some(area), word));
            let Some(level) = LEVELS.iter().position(|level| *level == word) else {
                return Err(format!("'{word}' is none of the levels {}", LEVELS.join(", ")));
            };
            match area.map(|area| (area, AREAS.iter().position(|own| *own == area))) {
                None => levels.areas.fill(level),
                Some((_, Some(at))) => levels.areas[at] = level,
                Some((area, None)) => levels.strangers.push(area.to_owned()),
            }
        }
        Ok(levels)
    }

    /// Whether a message of that area and level is shown.
    fn shows(&self, area: &str, level: &str) -> bool {
        let place = |words: &[&str], word| words.iter().position(|own| *own == word);
        match (place(AREAS, area), place(LEVELS, level)) {
            (Some(area), Some(level)) => level <= self.areas[area],
            _ => false,
        }
    }

    /// Logs a message.
    pub(crate) fn log(&self, area: &str, level: &str, text: impl fmt::Display) {
        if self.shows(area, level) {
            eprintln!("legate: {level}: {area}: {text}");
        }
    }

    /// Says which areas were named in vain.
    pub(crate) fn greet_strangers(&self) {
        for area in &self.strangers {
            let text = format!("--logging: there is no area {area} here; areas are {}", AREAS.join(", "));
            self.log("launcher", "warning", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Levels;

    #[test]
    fn levels_by_area() {
        let levels = Levels::read("info,binding=debug,launcher=none,gpu=debug").expect("levels");
        assert!(levels.shows("binding", "debug") && levels.shows("runtime", "info"));
        assert!(!levels.shows("runtime", "debug") && !levels.shows("launcher", "error"));
        assert_eq!(levels.strangers, ["gpu"]);
        assert!(Levels::read("loud").is_err() && Levels::read("binding=").is_err());
        assert!(Levels::read("").expect("levels").shows("launcher", "warning"));
    }
}
