package mail

import "slices"

// Letter is the recipients of one e-mail.
type Letter struct{ To, CC, BCC []Address }

// NewLetter returns a letter in which each address occurs once: as To rather
// than BCC, and as BCC rather than CC.
func NewLetter(to, cc, bcc []Address) Letter {
	return Letter{To: to, CC: Without(cc, slices.Concat(to, bcc)), BCC: Without(bcc, to)}
}

// All returns the recipients of all three kinds.
func (l Letter) All() []Address { return slices.Concat(l.To, l.CC, l.BCC) }

// Recipients returns how many recipients the mails to targets have that each go
// to cc and bcc as well. Without targets it is one mail.
func Recipients(targets, cc, bcc []string) int {
	return max(len(targets), 1) * (1 + len(cc) + len(bcc))
}
