package mail

import "slices"

// Recipients are the recipients of one e-mail.
type Recipients struct{ To, CC, BCC []Address }

// NewRecipients returns recipients without repeated addresses. An address in several lists stays
// in To rather than BCC, and in BCC rather than CC.
func NewRecipients(to, cc, bcc []Address) Recipients {
	return Recipients{To: to, CC: Without(cc, slices.Concat(to, bcc)), BCC: Without(bcc, to)}
}

// All returns the recipients of all three kinds.
func (r Recipients) All() []Address { return slices.Concat(r.To, r.CC, r.BCC) }

// CountRecipients returns how many recipients a message has if each target gets a separate e-mail,
// with copies to cc and bcc. Without targets it is one e-mail.
func CountRecipients(targets, cc, bcc []string) int {
	return max(len(targets), 1) * (1 + len(cc) + len(bcc))
}
