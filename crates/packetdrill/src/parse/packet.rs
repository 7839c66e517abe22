//! Packets in the text of a script.

use crate::ScriptProblem;
use crate::reader::ScriptReader;
use crate::script::{PacketSpec, TcpOption};
use firstlight_net::Ecn;

/// A packet, behind its direction.
pub(super) fn packet(reader: &mut ScriptReader) -> Result<PacketSpec, ScriptProblem> {
    let ecn = if reader.take("[") { Some(ecn(reader)?) } else { None };
    if reader.sees_number() || reader.sees("icmp") || reader.sees("udp") {
        return Err(ScriptProblem::unsupported(reader.line(), "packets that name ports, and those of ICMP and UDP"));
    }
    let flags = flags(reader)?;
    let seq = reader.unsigned()?;
    reader.expect(":")?;
    let _end: u32 = reader.unsigned()?;
    reader.expect("(")?;
    let len = reader.unsigned()?;
    reader.expect(")")?;
    let ack = if reader.take("ack ") { Some(reader.unsigned()?) } else { None };
    let window = if reader.take("win ") { Some(reader.unsigned()?) } else { None };
    if flags.contains('U') || reader.take("urg ") {
        return Err(ScriptProblem::unsupported(reader.line(), "urgent data"));
    }
    let options = if reader.take("<") { options(reader)? } else { Some(vec![]) };
    Ok(PacketSpec { ecn, flags, seq, len, ack, window, options })
}

fn ecn(reader: &mut ScriptReader) -> Result<Ecn, ScriptProblem> {
    let found = match reader.word() {
        "noecn" => Ecn::NotEct,
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        "ce" => Ecn::Ce,
        _ => return Err(ScriptProblem::unsupported(reader.line(), "fields of the IP header other than ECN")),
    };
    reader.expect("]")?;
    Ok(found)
}

fn flags(reader: &mut ScriptReader) -> Result<String, ScriptProblem> {
    reader.skip();
    let flags = reader.run(|c| "FSRP.UEW-".contains(c));
    if flags.is_empty() || !reader.rest().starts_with([' ', '\t']) {
        return Err(ScriptProblem::unsupported(reader.line(), "flags of Accurate ECN"));
    }
    Ok(flags.replace('-', ""))
}

fn options(reader: &mut ScriptReader) -> Result<Option<Vec<TcpOption>>, ScriptProblem> {
    if reader.take("...") {
        reader.expect(">")?;
        return Ok(None);
    }
    let mut options = vec![];
    loop {
        options.push(option(reader)?);
        if reader.take(">") {
            return Ok(Some(options));
        }
        reader.expect(",")?;
    }
}

fn option(reader: &mut ScriptReader) -> Result<TcpOption, ScriptProblem> {
    Ok(match reader.word() {
        "nop" => TcpOption::Nop,
        "eol" => TcpOption::End,
        "mss" => TcpOption::Mss(reader.unsigned()?),
        "wscale" => TcpOption::WindowScale(reader.unsigned()?),
        "sackOK" => TcpOption::SackPermitted,
        "sack" => TcpOption::Sack(blocks(reader)?),
        "TS" => {
            reader.expect("val")?;
            let value = reader.unsigned()?;
            reader.expect("ecr")?;
            TcpOption::Timestamp { value, echo: reader.unsigned()? }
        }
        name => {
            let rest = reader.run(|c| c != ',' && c != '>');
            TcpOption::Other(format!("{name}{rest}"))
        }
    })
}

fn blocks(reader: &mut ScriptReader) -> Result<Vec<(u32, u32)>, ScriptProblem> {
    let mut blocks = vec![];
    while reader.sees_number() {
        let start = reader.unsigned()?;
        reader.expect(":")?;
        blocks.push((start, reader.unsigned()?));
    }
    Ok(blocks)
}
