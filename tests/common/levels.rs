//! The levels that a test runs at.

use pullback::Level;
use std::env;
use std::fs::OpenOptions;
use std::io::Write;

/// Runs `test` at every level of this CPU.
///
/// `PULLBACK_REQUIRE=v3,v4` makes a listed level that is not available a failure: nothing is skipped in silence. Every
/// run adds a line `<level> <test>` to the file that `PULLBACK_LEVEL_LOG` names, for CI to count.
pub fn each<F: Fn(Level)>(test: F) {
    let name = std::any::type_name::<F>().replace("::{{closure}}", "");
    if let Some(required) = env::var_os("PULLBACK_REQUIRE") {
        let required = required.to_string_lossy();
        for word in required.split(',').filter(|word| !word.is_empty()) {
            let level = Level::ALL.into_iter().find(|level| level.to_string() == word);
            let level = level.unwrap_or_else(|| panic!("PULLBACK_REQUIRE={required}: {word} is no level"));
            assert!(level.is_available(), "{name}: level {level} is required and not available");
        }
    }
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        eprintln!("{name} at {level}");
        test(level);
        if let Some(path) = env::var_os("PULLBACK_LEVEL_LOG") {
            let mut log = OpenOptions::new().create(true).append(true).open(path).expect("the log of levels opens");
            log.write_all(format!("{level} {name}\n").as_bytes()).expect("the log of levels is written");
        }
    }
}
