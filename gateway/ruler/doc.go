// Package ruler keeps the alerts that rulers, such as Prometheus, post again and again while
// they fire.
//
// The alerts of a group are one incident. They are one record in the queue or, if they are many, a
// record and pieces, of which a change writes only those that it changes:
//
//	new ──group_wait──▶ open ──something joins or leaves, group_interval──▶ open
//	                     └────nothing fires any more, group_interval────▶ over
//
// Each arrow is a message, which is stored in the transaction that changes the records. A post
// that says nothing new is only kept in memory. It is stored when half of the time has passed
// after which the alerts end, so that neither a restart nor another gateway that shares the
// queue ends what still fires.
package ruler
