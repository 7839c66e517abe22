//! Square matrices of numbers as spreadsheets write them: a line for each row, entries separated by commas. The entry
//! in row i and column j is from i to j. Traffic within a rack is not between racks, so that the diagonal is 0.

use super::ImportError;
use super::reader::{FilePlace, Word};

/// The largest entry that a matrix may have.
const LARGEST: f64 = 1e12;

/// Reads a matrix of `rows` rows; `file` is its name for errors.
///
/// # Errors
/// When an entry is wrong: with its place, and what would be right.
pub fn read(text: &str, file: &str, rows: usize) -> Result<Vec<Vec<f64>>, ImportError> {
    let mut matrix: Vec<Vec<f64>> = vec![];
    let written = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in written {
        let words = cells(file, number + 1, line);
        if matrix.len() == rows {
            return Err(words[0].error(format!("it is one row too many: the fabric has {rows} senders")));
        }
        if words.len() != rows {
            let last = words.last().expect("a line has a word");
            return Err(last.error(format!("the row has {} entries: the fabric has {rows} receivers", words.len())));
        }
        let own = matrix.len();
        let row = words.iter().enumerate().map(|(column, word)| entry(word, column == own));
        matrix.push(row.collect::<Result<_, _>>()?);
    }
    let place = FilePlace { file, line: text.lines().count().max(1), column: 1 };
    if matrix.len() < rows {
        return Err(place.error(format!("the file has {} rows: the fabric has {rows} senders", matrix.len())));
    }
    if matrix.iter().flatten().all(|entry| *entry == 0.0) {
        return Err(FilePlace::start(file).error("every entry is 0, so nothing would be sent: write larger ones"));
    }
    Ok(matrix)
}

/// The entries of a line with their places.
fn cells<'a>(file: &'a str, line: usize, text: &'a str) -> Vec<Word<'a>> {
    let mut column = 1;
    let cell = |cell: &'a str| {
        let indent = cell.chars().take_while(|letter| letter.is_whitespace()).count();
        let word = Word { text: cell.trim(), place: FilePlace { file, line, column: column + indent } };
        column += cell.chars().count() + 1;
        word
    };
    text.split(',').map(cell).collect()
}

fn entry(word: &Word<'_>, own: bool) -> Result<f64, ImportError> {
    let plain = word.text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    let number = word.text.parse().ok().filter(|n: &f64| plain && (0.0..=LARGEST).contains(n));
    let number = number.ok_or_else(|| {
        word.error(format!("expected an entry, found '{}': write a number from 0 to {LARGEST}", word.text))
    })?;
    if own && number != 0.0 {
        return Err(word.error(format!("{number} would be sent to itself: the diagonal is 0")));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text, "m.csv", 2).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn matrices_of_spreadsheets_are_read() {
        let text = "0, 1.5 ,2e3\r\n4,0,5\n\n6,7,0\n";
        assert_eq!(read(text, "m.csv", 3).unwrap(), [[0.0, 1.5, 2000.0], [4.0, 0.0, 5.0], [6.0, 7.0, 0.0]]);
    }

    #[test]
    fn wrong_entries_are_named() {
        assert_eq!(error("0,1\n"), "m.csv:1:1: the file has 1 rows: the fabric has 2 senders");
        assert_eq!(error("0,1\n1,0\n1,0\n"), "m.csv:3:1: it is one row too many: the fabric has 2 senders");
        assert_eq!(error("0,1,2\n1,0\n"), "m.csv:1:5: the row has 3 entries: the fabric has 2 receivers");
        assert_eq!(error("0\n"), "m.csv:1:1: the row has 1 entries: the fabric has 2 receivers");
        let wanted = "write a number from 0 to 1000000000000";
        assert_eq!(error("0,µ\n1,0\n"), format!("m.csv:1:3: expected an entry, found 'µ': {wanted}"));
        assert_eq!(error("0,1\n -1,0\n"), format!("m.csv:2:2: expected an entry, found '-1': {wanted}"));
        assert_eq!(error("0,nan\n1,0\n"), format!("m.csv:1:3: expected an entry, found 'nan': {wanted}"));
        assert_eq!(error("0,\n1,0\n"), format!("m.csv:1:3: expected an entry, found '': {wanted}"));
        assert_eq!(error("0,1\n1, 3\n"), "m.csv:2:4: 3 would be sent to itself: the diagonal is 0");
        assert_eq!(error("0,0\n0,0\n"), "m.csv:1:1: every entry is 0, so nothing would be sent: write larger ones");
    }
}
