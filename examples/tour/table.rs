//! A table of steps: what went in and out, how long it took, who did it, and whether it was right.

use super::check::Check;
use pullback::Level;
use std::fmt;
use std::time::Instant;

const HEADS: [&str; 6] = ["step", "shapes", "time", "level", "threads", "check"];

/// The column whose cells end under each other.
const TIME: usize = 2;

/// Steps in the order in which they ran.
#[derive(Default)]
pub struct Table {
    rows: Vec<[String; HEADS.len()]>,
    /// Headings, and the rows that they stand above.
    chapters: Vec<(usize, String)>,
    failed: usize,
    checked: usize,
}

impl Table {
    /// Runs a step and times it. `level` is that of a step of the library, which may use all threads of the pool; the
    /// example's own loops have none and run on one thread.
    pub fn run<T>(&mut self, step: &str, shapes: String, level: Option<Level>, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let time = format!("{:.1} ms", 1e3 * start.elapsed().as_secs_f64());
        let (level, threads) = match level {
            Some(level) => (level.to_string(), rayon::current_num_threads().to_string()),
            None => ("-".into(), "1".into()),
        };
        self.rows.push([step.into(), shapes, time, level, threads, String::new()]);
        result
    }

    /// Says what the last step made, where that was not known before.
    pub fn shapes(&mut self, shapes: String) {
        if let Some([_, cell, ..]) = self.rows.last_mut() {
            *cell = shapes;
        }
    }

    /// Says of the last step whether it was right, below what was said of it before.
    pub fn check(&mut self, Check { passed, detail }: Check) {
        self.checked += 1;
        self.failed += usize::from(!passed);
        if self.rows.last().is_some_and(|[.., cell]| !cell.is_empty()) {
            self.rows.push(Default::default());
        }
        if let Some([.., cell]) = self.rows.last_mut() {
            *cell = format!("{}: {detail}", if passed { "ok" } else { "FAILED" });
        }
    }

    /// Begins a chapter: the steps to come are below a line of their own.
    pub fn chapter(&mut self, name: &str) {
        self.chapters.push((self.rows.len(), name.into()));
    }

    /// Checks made, and those that failed.
    pub fn counts(&self) -> (usize, usize) {
        (self.checked, self.failed)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = HEADS.map(String::from);
        let lines = || std::iter::once(&heads).chain(&self.rows);
        let widths: [usize; HEADS.len()] =
            std::array::from_fn(|column| lines().map(|line| line[column].len()).max().unwrap_or(0));
        for (at, line) in lines().enumerate() {
            if let Some((_, name)) = self.chapters.iter().find(|(row, _)| row + 1 == at) {
                writeln!(f, "\n{name}")?;
            }
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
                text += &if column == TIME { format!("{cell:>width$}  ") } else { format!("{cell:width$}  ") };
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}
