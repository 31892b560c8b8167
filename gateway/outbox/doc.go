// Package outbox stores what cannot be sent now, and delivers it later. A message comes as a
// [Submission], which sends it at once where that is possible and stores what is left;
// [Outbox.Attempt] makes the attempts after that. What rules, devices and inboxes have to do
// with a message is handed in as a [Policy].
package outbox
