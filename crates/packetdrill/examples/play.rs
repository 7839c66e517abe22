//! Plays scripts and prints what became of each: `cargo run -p firstlight-packetdrill --example play -- FILE...`

use std::path::PathBuf;

fn main() {
    let mut passed = 0;
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match firstlight_packetdrill::run(file) {
            Ok(()) => passed += 1,
            Err(problem) => println!("{name}: {problem}"),
        }
    }
    println!("{passed} of {} scripts pass", files.len());
}
