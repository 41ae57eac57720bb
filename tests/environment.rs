//! The environment variables, each in a process of its own: they are read once.

mod common;

use common::cloud::Cloud;
use common::levels;
use common::neighbors::assert_exact;
use common::random::Random;
use common::values::Value;
use ndarray::{Array2, array};
use pullback::gather::{Gather, OutOfRange};
use pullback::kdtree::{Builder, KdTree};
use pullback::{Error, Level};
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Whether the test `name` of this file passes with an environment variable.
fn passes(name: &str, variable: &str, value: impl AsRef<OsStr>) -> bool {
    let this = env::current_exe().expect("a test runs from a file");
    let mut child = Command::new(this);
    child.args(["--exact", name]);
    for other in ["PULLBACK_SIMD", "PULLBACK_REQUIRE", "PULLBACK_LEVEL_LOG"] {
        child.env_remove(other);
    }
    let output = child.env(variable, value).output().expect("a test can be run again");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("running 1 test"), "no test is called {name}: {report}");
    output.status.success()
}

fn gather() -> pullback::Result<Gather<ndarray::Ix2>> {
    Gather::new(array![[0]].view(), 1, OutOfRange::Error)
}

/// True of any environment; the tests below run it in several.
#[test]
fn operators_obey_pullback_simd() {
    let word = env::var_os("PULLBACK_SIMD");
    let ceiling = match word.as_ref().map(|word| word.to_str()) {
        None | Some(Some("v4")) => Level::V4,
        Some(Some("v3")) => Level::V3,
        Some(Some("base")) => Level::Base,
        Some(_) => {
            let value = word.unwrap_or_default().to_string_lossy().into_owned();
            let message = format!("PULLBACK_SIMD={value} is not understood, accepted are base, v3, v4");
            let error = Error::Environment { variable: "PULLBACK_SIMD", value, accepted: "base, v3, v4" };
            assert_eq!(error.to_string(), message);
            assert_eq!(gather().err(), Some(error.clone()));
            assert_eq!(Gather::unbatched(array![0].view(), 1, OutOfRange::Error).err(), Some(error.clone()));
            assert_eq!(KdTree::<f64, 1>::new(array![[0.0]].view()).err(), Some(error.clone()));
            assert_eq!(Level::current(), Err(error));
            return;
        }
    };
    let highest = Level::ALL.into_iter().rfind(|level| level.is_available()).expect("the base level");
    assert_eq!(Level::current(), Ok(ceiling.min(highest)), "lowered, never raised");
    assert_eq!(gather().unwrap().level(), ceiling.min(highest));
    assert_eq!(KdTree::<f64, 1>::new(array![[0.0]].view()).unwrap().level(), ceiling.min(highest));
}

/// True of any environment: trees are built at the level that it sets.
#[test]
fn trees_are_exact() {
    fn check<T: Value, const D: usize>(level: Level, cloud: Cloud) {
        let mut random = Random::new(7);
        for rows in [33, 300, 2000] {
            let points: Array2<T> = cloud.points(rows, D, &mut random);
            let queries = cloud.queries(&points, 33, &mut random);
            assert_exact::<T, D>(level, Builder::default(), &points, &queries, 5);
        }
    }
    let Ok(level) = Level::current() else { return };
    for cloud in [Cloud::Uniform, Cloud::Lattice, Cloud::Huge, Cloud::Stretched] {
        check::<f32, 3>(level, cloud);
        check::<f64, 2>(level, cloud);
        check::<f64, 5>(level, cloud);
    }
}

#[test]
fn words_lower_the_level() {
    for word in ["base", "v3", "v4"] {
        assert!(passes("operators_obey_pullback_simd", "PULLBACK_SIMD", word), "{word}");
        assert!(passes("trees_are_exact", "PULLBACK_SIMD", word), "{word}");
    }
}

#[test]
fn other_words_are_errors() {
    for word in ["", "v2", "V3", "avx2", " base", "v3,v4", "1", "caf\u{e9}"] {
        assert!(passes("operators_obey_pullback_simd", "PULLBACK_SIMD", word), "{word}");
    }
}

#[cfg(unix)]
#[test]
fn a_word_that_is_not_unicode_is_an_error() {
    let word: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"v3\xff");
    assert!(passes("operators_obey_pullback_simd", "PULLBACK_SIMD", word));
}

#[test]
fn with_level_takes_what_the_cpu_has() {
    let highest = Level::highest();
    for level in Level::ALL {
        let found = gather().unwrap().with_level(level).map(|gather| gather.level());
        let expected = if level <= highest { Ok(level) } else { Err(Error::LevelUnavailable { level, highest }) };
        assert_eq!(found, expected);
    }
    let error = Error::LevelUnavailable { level: Level::V4, highest: Level::Base };
    assert_eq!(error.to_string(), "level v4 is not available here, the highest is base");
}

/// Whatever `PULLBACK_SIMD` says, and logged; the tests below run it with other variables.
#[test]
fn tests_reach_every_level() {
    levels::each(|level| assert_eq!(gather().unwrap().with_level(level).unwrap().level(), level));
}

#[test]
fn a_required_level_that_does_not_run_is_a_failure() {
    assert!(passes("tests_reach_every_level", "PULLBACK_SIMD", "base"));
    assert!(passes("tests_reach_every_level", "PULLBACK_REQUIRE", "base"));
    for level in Level::ALL {
        let runs = passes("tests_reach_every_level", "PULLBACK_REQUIRE", format!("base,{level}"));
        assert_eq!(runs, level.is_available(), "{level}");
    }
    assert!(!passes("tests_reach_every_level", "PULLBACK_REQUIRE", "v3,v5"));
}

#[test]
fn levels_that_ran_are_logged() {
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("levels-{}", std::process::id()));
    assert!(passes("tests_reach_every_level", "PULLBACK_LEVEL_LOG", &log));
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let ran = Level::ALL.into_iter().filter(|level| level.is_available());
    let expected: String = ran.map(|level| format!("{level} environment::tests_reach_every_level\n")).collect();
    assert_eq!(lines, expected);
}
