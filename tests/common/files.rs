//! Real files, which are not part of the repository.

use std::env;
use std::path::{Path, PathBuf};

/// The file `name` of the directory `PULLBACK_DATA`, by default `../shared/data`. Where it is missing the caller's test
/// is skipped, which is printed, or fails where `PULLBACK_REQUIRE_DATA=1`.
pub fn find(name: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = env::var_os("PULLBACK_DATA").map_or_else(default, PathBuf::from).join(name);
    if path.is_file() {
        return Some(path);
    }
    assert!(env::var_os("PULLBACK_REQUIRE_DATA").is_none_or(|v| v != "1"), "{} is missing", path.display());
    eprintln!("skipped: {} is missing", path.display());
    None
}
