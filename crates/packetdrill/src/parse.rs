//! From text to script. The language is that of packetdrill (`syntax.md` in its repository).

mod call;
mod packet;

use crate::ScriptProblem;
use crate::reader::ScriptReader;
use crate::script::{Script, ScriptAction, ScriptEvent, ScriptTime};
use firstlight_units::Span;

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, ScriptProblem> {
    let mut reader = ScriptReader::new(text);
    let mut script = Script::default();
    while reader.take("--") {
        let name = reader.run(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
        let value = if reader.rest().starts_with('=') { reader.run(|c| !c.is_whitespace()) } else { "" };
        script.options.push((name, value.trim_start_matches('=').to_owned()));
    }
    while !reader.is_done() {
        script.events.push(event(&mut reader)?);
    }
    Ok(script)
}

fn event(reader: &mut ScriptReader) -> Result<ScriptEvent, ScriptProblem> {
    let line = reader.line();
    // The commands before and after all else have no time.
    let when = if reader.sees("`") { ScriptTime::Relative(Span::ZERO, Span::ZERO) } else { when(reader)? };
    let action = action(reader)?;
    Ok(ScriptEvent { line, when, action })
}

fn when(reader: &mut ScriptReader) -> Result<ScriptTime, ScriptProblem> {
    if reader.take("*") {
        return Ok(ScriptTime::Any);
    }
    let relative = reader.take("+");
    let first = reader.seconds()?;
    let mut last = first;
    if reader.take("~") {
        reader.take("+");
        last = reader.seconds()?;
    }
    Ok(if relative { ScriptTime::Relative(first, last) } else { ScriptTime::Absolute(first, last) })
}

fn action(reader: &mut ScriptReader) -> Result<ScriptAction, ScriptProblem> {
    if reader.take("<") {
        return packet::packet(reader).map(ScriptAction::Inbound);
    }
    if reader.take(">") {
        return packet::packet(reader).map(ScriptAction::Outbound);
    }
    if reader.take("`") {
        return Ok(ScriptAction::Command(reader.until("`")?.to_owned()));
    }
    if reader.take("%{") {
        return Ok(ScriptAction::Code(reader.until("}%")?.to_owned()));
    }
    call::call(reader).map(ScriptAction::Call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{ScriptValue, TcpOption};

    #[test]
    fn every_part_of_a_script_is_read() {
        let text = "// About\n--mss=1000\n--strict\n\n`./defaults.sh\nsysctl -q a=1`\n\n    0 socket(..., SOCK_STREAM, \
                    IPPROTO_TCP) = 3\n +.002 ... 0.004 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in \
                    progress)\n+.3~+.31 > SE. 0:0(0) ack 1 <mss 1460,nop,wscale 8>\n * < [ect0] P. 1:1001(1000) ack 1 \
                    win 257 <sack 1:2 3:4,nop, TS val 5 ecr 6>\n+0 %{ assert 1 # }\n}%\n`last`";
        let Script { options, events } = parse(text).unwrap();
        assert_eq!(options, [("mss".into(), "1000".into()), ("strict".into(), String::new())]);
        let lines: Vec<usize> = events.iter().map(|event| event.line).collect();
        assert_eq!(lines, [5, 8, 9, 10, 11, 12, 14]);
        let ms = Span::from_ms;
        assert_eq!(events[2].when, ScriptTime::Relative(ms(2), ms(2)));
        assert_eq!(events[3].when, ScriptTime::Relative(ms(300), ms(310)));
        assert_eq!(events[4].when, ScriptTime::Any);
        let ScriptAction::Call(connect) = &events[2].action else { panic!() };
        assert_eq!((connect.end, connect.errno.as_deref()), (Some(ms(4)), Some("EINPROGRESS")));
        assert_eq!((connect.args.len(), &connect.result), (3, &ScriptValue::Number(-1)));
        let ScriptAction::Outbound(syn) = &events[3].action else { panic!() };
        assert_eq!((&*syn.flags, syn.ack, syn.window), ("SE.", Some(1), None));
        assert_eq!(syn.options, Some(vec![TcpOption::Mss(1460), TcpOption::Nop, TcpOption::WindowScale(8)]));
        let ScriptAction::Inbound(data) = &events[4].action else { panic!() };
        assert_eq!((data.seq, data.len, data.window), (1, 1000, Some(257)));
        let sack = TcpOption::Sack(vec![(1, 2), (3, 4)]);
        assert_eq!(data.options, Some(vec![sack, TcpOption::Nop, TcpOption::Timestamp { value: 5, echo: 6 }]));
    }

    #[test]
    fn calls_have_structured_arguments() {
        let text =
            "+0 sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 0}, {..., 40}],\n msg_flags=A|B}, MSG_MORE) = 40";
        let ScriptAction::Call(call) = &parse(text).unwrap().events[0].action else { panic!() };
        let message = &call.args[1];
        let lengths = message.field("msg_iov").unwrap().items().iter().map(|item| item.field("").cloned());
        assert_eq!(lengths.collect::<Vec<_>>(), [Some(ScriptValue::Any), Some(ScriptValue::Any)]);
        assert!(message.field("msg_flags").unwrap().has("B"));
        assert_eq!(call.args[2], ScriptValue::Name("MSG_MORE".into()));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let problem = parse("+0 close(3) = 0\n+0 > P. 1:1001 ack 1").unwrap_err();
        assert_eq!(problem.to_string(), "line 2: expected `(`, found `ack 1`");
    }
}
