// Package ruler stores alerts of rulers, such as Prometheus, which post an alert again and again
// while it fires.
//
// The alerts of a group are one incident. A small group is one record in the queue; a large one is
// a record and pieces, so that a change writes only the changed pieces:
//
//	new ──group_wait──▶ open ──something joins or leaves, group_interval──▶ open
//	                     └────nothing fires any more, group_interval────▶ over
//
// Each arrow is a message, which is stored in the transaction that changes the records. A post that
// says nothing new is kept in memory. It is stored when half of the time until its alerts end has
// passed, so that neither a restart nor another gateway that shares the queue ends alerts that
// still fire.
package ruler
