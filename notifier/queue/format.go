package queue

import "fmt"

// Format says in which form a store was written. Stores number their forms: each change that a
// program of before would misread, in the tables or files of the store or in what messages, jobs
// and records hold, gets the next number.
//
// A store keeps its Format beside its content, so that several versions of the program can use it,
// at the same time or one after the other. A program ignores additions that it does not know. What
// would make it lose a message, or send one early or twice, raises Needs, so that it refuses the
// store. That takes two versions of the program: one knows the form and raises Written; the next
// one writes it and raises Needs. So a program always works beside the version before.
type Format struct {
	Written int // the newest form that a program which has used the store knows
	Needs   int // the form that a program must know at least
}

// Check returns an error that says what to do if a program that knows the forms up to known cannot
// use the store.
func (f Format) Check(known int) error {
	if f.Needs <= known {
		return nil
	}
	return fmt.Errorf("a later version of the program has written it in form %d, for programs that know form %d, and this one knows up to "+
		"%d: update it, or start that version again; to go back, restore a back-up from before the upgrade", f.Written, f.Needs, known)
}

// Join returns the Format of a store with the format f after a program that writes the format own
// has opened it.
func (f Format) Join(own Format) Format {
	return Format{max(f.Written, own.Written), max(f.Needs, own.Needs)}
}
