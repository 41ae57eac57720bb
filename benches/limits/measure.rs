//! Rounds of limit, ours and peers, and the table they make.

pub use crate::random::Random;
use serde::Serialize;
use std::cell::RefCell;
use std::time::Instant;

/// What a whole run has in common: which jobs, and how small.
pub struct Suite {
    words: Vec<String>,
    quick: bool,
    /// What has been measured.
    pub rows: RefCell<Vec<Row>>,
    pub figures: RefCell<Vec<Figure>>,
}

/// What a job came to: milliseconds, and ratios within a round.
#[derive(Serialize)]
pub struct Row {
    pub job: String,
    pub ours_ms: f64,
    pub limit_ms: f64,
    /// Of ours to the limit: the median, and from the lowest to the highest.
    pub ratio: f64,
    pub spread: [f64; 2],
    pub peers: Vec<Peer>,
}

/// One other contestant of a job.
#[derive(Serialize)]
pub struct Peer {
    pub name: String,
    pub ms: f64,
    /// Its time over ours.
    pub speedup: f64,
    pub spread: [f64; 2],
}

/// A measurement without a limit.
#[derive(Serialize)]
pub struct Figure {
    pub job: String,
    pub unit: &'static str,
    pub value: f64,
}

impl Suite {
    pub fn new(words: Vec<String>, quick: bool) -> Self {
        Self { words, quick, rows: RefCell::default(), figures: RefCell::default() }
    }

    pub fn rounds(&self) -> usize {
        if self.quick { 2 } else { 9 }
    }

    pub fn quick(&self) -> bool {
        self.quick
    }

    /// Whether the user asked for this job.
    pub fn wants(&self, job: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| job.contains(word.as_str()))
    }

    /// Whether the user named this word: what takes minutes runs only then.
    pub fn names(&self, word: &str) -> bool {
        self.words.iter().any(|own| own.contains(word))
    }

    /// Keeps a measurement without a limit for the report.
    pub fn figure(&self, job: impl Into<String>, unit: &'static str, value: f64) {
        self.figures.borrow_mut().push(Figure { job: job.into(), unit, value });
    }

    /// A size for this run: the real one, or one that is done in a moment.
    pub fn size(&self, n: usize) -> usize {
        if self.quick { n.div_ceil(64) } else { n }
    }
}

/// One contestant of a job: a name, a call, and the factor from its time to that of the whole work.
pub struct Entry<'a> {
    pub name: &'a str,
    pub call: Box<dyn FnMut() + 'a>,
    pub scale: f64,
}

/// A contestant that does the whole work once.
pub fn entry<'a>(name: &'a str, call: impl FnMut() + 'a) -> Entry<'a> {
    Entry { name, call: Box::new(call), scale: 1.0 }
}

/// The unavoidable work of a job: a call, and the factor from its time to the job's.
pub struct Limit<'a> {
    pub call: Box<dyn FnMut() + 'a>,
    pub scale: f64,
}

/// The milliseconds of every entry in every round.
pub fn rounds(suite: &Suite, entries: &mut [Entry<'_>]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); entries.len()];
    for round in 0..=suite.rounds() {
        for (entry, times) in entries.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (entry.call)();
            // The first round warms caches, page tables and the pool.
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3 * entry.scale);
            }
        }
    }
    times
}

/// The median, the lowest and the highest.
pub fn summary(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

/// Runs a job in rounds and prints its rows.
pub fn job<'a>(suite: &Suite, name: &str, limit: Limit<'a>, ours: Entry<'a>, peers: Vec<Entry<'a>>) {
    let mut entries = vec![Entry { name: "limit", call: limit.call, scale: limit.scale }, ours];
    entries.extend(peers);
    let times = rounds(suite, &mut entries);
    let ratio = |of: &[f64], to: &[f64]| summary(of.iter().zip(to).map(|(of, to)| of / to).collect());
    let medians: Vec<f64> = times.iter().map(|times| summary(times.clone()).0).collect();
    let job = format!("{name}/{}", entries[1].name);
    let (limit_ms, ours_ms) = (medians[0], medians[1]);
    let (x, low, high) = ratio(&times[1], &times[0]);
    println!("\n{job:55} {ours_ms:9.3} ms  limit {limit_ms:20.3} ms  {x:6.2} x the limit");
    println!("LIMIT job={job} ours_ms={ours_ms:.4} limit_ms={limit_ms:.4} ratio={x:.3} spread={low:.3}..{high:.3}");
    let mut row = Row { job: job.clone(), ours_ms, limit_ms, ratio: x, spread: [low, high], peers: vec![] };
    for (peer, (peer_times, peer_ms)) in entries[2..].iter().zip(times[2..].iter().zip(&medians[2..])) {
        let (x, low, high) = ratio(peer_times, &times[1]);
        let peer = peer.name;
        println!("{job:55} {ours_ms:9.3} ms  {peer:16} {peer_ms:9.3} ms  {x:6.2} x as fast");
        println!(
            "PEER job={job} peer={peer} ours_ms={ours_ms:.4} peer_ms={peer_ms:.4} speedup={x:.3} spread={low:.3}..{high:.3}"
        );
        let (name, ms, spread) = (peer.to_string(), *peer_ms, [low, high]);
        row.peers.push(Peer { name, ms, speedup: x, spread });
    }
    suite.rows.borrow_mut().push(row);
}
