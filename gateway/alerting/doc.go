// Package alerting applies the rules of keys to messages over time, and keeps incidents and
// silences. The rules themselves are package rules, which knows no clock and no store; this
// package reads and changes their records in the queue, in the transactions in which the
// queue stores a message or ends a job.
//
// An incident is a problem that messages of a key name: one opens it, others tell that it
// got worse or better, and one resolves it. A failure that names no incident, to a key that
// escalates, is an incident of its own, which only a person can resolve. Each time that an
// incident opens is an opening with a public ID of its own, so that a link in an old message
// does not lead to a new problem. What people call its state is [rules.Incident.Stage]:
//
//	         first message,                 somebody takes
//	         or one after it was            care of it
//	         resolved
//	(unknown) ───────────────▶ open ───────────────────────▶ acknowledged
//	    ▲                       │ ▲                            │       │
//	    │                       │ └── the time of the ─────────┘       │
//	    │                       │     acknowledgement is over,         │
//	    │                       │     and the steps begin again        │
//	    │                       ▼                                      │
//	    └────────────────── resolved ◀─────────────────────────────────┘
//	  nothing is heard of           a message, or a person,
//	  it for some days              says that it is over
//
// What is open and not acknowledged can be forgotten, too, when nothing is heard of it for
// that long and no step of it waits.
//
// A step is a number in the tags of URLs of a key that escalates. Those with the lowest
// number are told at once, those with the next ones later, until somebody acknowledges the
// incident. After the last step the next round begins. Jobs of later steps are stored with
// the message and held until their step begins.
//
// A hold is why a job waits although its destination could be reached: a window of quiet, a digest,
// a rate, a silence, or a step (see [rules.Hold]). A lane ([rules.Lane]) is a record of what rules
// other than steps hold for one destination of a key. When a time comes, a lane releases its items
// as one message, a digest, or by themselves.
//
// A subject ([rules.Subject]) is what one destination knows of an incident, or of messages
// that say the same: what it was told last, what waits for it, and what is on its way.
// Without it, a destination would be told the end of a problem that it never heard of.
//
// A silence keeps messages of a key from its destinations until a time. A problem that
// begins meanwhile is held. If it is over before the silence ends, nobody is told; otherwise it is
// told then. A silence may begin later. A window of the configuration makes a silence each week
// ([rules.SilenceWindow]). Whether a window holds follows from the configuration and the time
// alone; its record has what was noted, told and counted.
//
// [Engine] is what the queue calls, and front ends use its [Incidents] and [Silences]. Where
// to look:
//
//	plan.go, decide.go                              what is decided about a new message
//	job_end.go                                      the end of a job
//	lanes.go, digest.go                             what is held is released
//	steps.go                                        the next step begins
//	incident_answer.go, incident_change.go          a person acknowledges or resolves
//	silence.go, silence_tell.go, silence_known.go   silences
//	memory.go, forget.go, share.go                  what is remembered, and for how long
//	records.go                                      what is stored
package alerting
