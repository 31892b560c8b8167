// Package rulestest holds a gateway to what is promised of messages to a key with rules
// over time. It sends random messages about incidents, acknowledges, resolves, silences
// and cancels, while destinations have outages and the gateway is killed. It knows
// nothing of how the rules work: it compares what its destinations were told, and what
// the gateway answers, with the promises, for each incident and destination:
//
//  1. Who was told "open" is told "resolved", and never before it. If "open" was
//     silenced, "resolved" is silent, too.
//  2. At the end, what was told last is the present state.
//  3. Nothing is left out without standing in a later message or in the message's
//     resource.
//  4. After an acknowledgement or a resolution, no attempt of a step begins.
package rulestest
