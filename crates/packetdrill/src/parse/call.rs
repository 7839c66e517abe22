//! Calls of the system in the text of a script.

use crate::ScriptProblem;
use crate::reader::ScriptReader;
use crate::script::{Call, ScriptValue};

/// `...end name(arguments) = result ERRNO (note)`.
pub(super) fn call(reader: &mut ScriptReader) -> Result<Call, ScriptProblem> {
    let end = if reader.take("...") { Some(reader.seconds()?) } else { None };
    let name = reader.word().to_owned();
    if name.is_empty() {
        return Err(reader.wrong("a packet, a call, a command or code"));
    }
    reader.expect("(")?;
    let args = values(reader, ")")?;
    reader.expect("=")?;
    let result = value(reader)?;
    let errno = if reader.sees("E") { Some(reader.word().to_owned()) } else { None };
    if reader.take("(") {
        reader.until(")")?;
    }
    Ok(Call { name, args, end, result, errno })
}

/// Values up to `end`.
fn values(reader: &mut ScriptReader, end: &str) -> Result<Vec<ScriptValue>, ScriptProblem> {
    let mut values = vec![];
    while !reader.take(end) {
        values.push(value(reader)?);
        if !reader.sees(end) {
            reader.expect(",")?;
        }
    }
    Ok(values)
}

fn value(reader: &mut ScriptReader) -> Result<ScriptValue, ScriptProblem> {
    if reader.take("...") {
        return Ok(ScriptValue::Any);
    }
    if reader.take("[") {
        return values(reader, "]").map(ScriptValue::List);
    }
    if reader.take("{") {
        return record(reader).map(ScriptValue::Record);
    }
    if reader.take("\"") {
        return reader.until("\"").map(|text| ScriptValue::Text(text.to_owned()));
    }
    if reader.sees_number() {
        return reader.number().map(ScriptValue::Number);
    }
    names(reader)
}

/// Names joined by `|`; what a function such as `htons` is given does not matter.
fn names(reader: &mut ScriptReader) -> Result<ScriptValue, ScriptProblem> {
    let mut names = String::new();
    loop {
        let name = reader.word();
        if name.is_empty() {
            return Err(reader.wrong("a value"));
        }
        names += name;
        if reader.take("(") {
            reader.until(")")?;
        }
        if !reader.take("|") {
            return Ok(ScriptValue::Name(names));
        }
        names.push('|');
    }
}

/// Fields up to the closing brace.
fn record(reader: &mut ScriptReader) -> Result<Vec<(String, ScriptValue)>, ScriptProblem> {
    let mut fields = vec![];
    while !reader.take("}") {
        let first = value(reader)?;
        let named = matches!(first, ScriptValue::Name(_)) && reader.take("=");
        fields.push(if named { (first.name().to_owned(), value(reader)?) } else { (String::new(), first) });
        if !reader.sees("}") {
            reader.expect(",")?;
        }
    }
    Ok(fields)
}
