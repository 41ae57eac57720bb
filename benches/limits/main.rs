//! Every target beside the limit of this machine and beside what users would pick instead, measured in one run.
//!
//! `cargo bench --bench limits` prints everything, `cargo bench --bench limits -- gather` the jobs whose name contains
//! the word. `--quick` shrinks the jobs, to see that they run; its figures mean nothing.
//!
//! Each job runs in rounds. A round times the limit, our kernel and every peer once, in turn, on the same threads; the
//! figures are medians over the rounds, and ratios are medians of the ratios within a round, so that a machine whose
//! speed drifts does not favour anyone. One line a row is for programs:
//!
//! ```text
//! LIMIT job=... ours_ms=... limit_ms=... ratio=... spread=...
//! PEER job=... peer=... ours_ms=... peer_ms=... speedup=... spread=...
//! ```
//!
//! All of it goes to `target/limits.json` and, as a table, to `target/limits.md` too, and the ratios to the limit into a chart,
//! `target/limits.svg`.

#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod arithmetic;
mod gather;
mod gather_reduce;
mod gather_segment;
mod gaussian;
mod interpolate;
mod kdtree;
mod kdtree_file;
mod kdtree_more;
mod measure;
mod memory;
mod mipmap;
mod mipmap_rows;
#[path = "../random.rs"]
mod random;
mod report;
mod triconv;

use measure::Suite;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let quick = arguments.iter().any(|word| word == "--quick");
    let words = arguments.into_iter().filter(|word| !word.starts_with("--")).collect();
    let suite = Suite::new(words, quick);
    let (level, threads) = (pullback::Level::current().expect("PULLBACK_SIMD"), rayon::current_num_threads());
    println!("level {level}, {threads} threads, at least {} rounds", suite.rounds());
    memory::report(&suite);
    gather::report(&suite);
    gather_reduce::report(&suite);
    gather_segment::report(&suite);
    kdtree::report(&suite);
    kdtree_more::report(&suite);
    interpolate::report(&suite);
    kdtree_file::report(&suite);
    gaussian::report(&suite);
    mipmap::report(&suite);
    triconv::report(&suite);
    match report::write(&suite, &level.to_string(), threads) {
        Ok(files) => files.iter().for_each(|file| println!("{} is written", file.display())),
        Err(error) => eprintln!("\nthe report cannot be written: {error}"),
    }
}
