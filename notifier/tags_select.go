package notifier

// Select returns the targets that the expression matches, and sets their chains. The numbers of
// tags have the same meaning as in Apprise (version 1.11 and later):
//
// Targets with 1:ops and 2:ops form a chain for the expression ops. Targets with the number 2 get
// the message only if a target with the number 1 does not have it. A tag without a number has the
// number 0. Each term of an OR is a separate chain, and a target belongs to the first one whose tag
// it has. Targets matched by an AND, by all or by their tag always form one chain together, with
// the lowest number of any tag that the expression names. Without a number, those that are apart
// form a chain of their own, so that they do not come before the numbers of others.
//
// An expression that has a number itself, such as 2:ops, matches only the tags with this number,
// and there are no chains: all targets get the message at once. The same applies to the empty
// expression.
//
// A number after a tag, as in ops:3, is the number of retries, instead of the number in the URLs.
// The first term that matches a target gives it the number.
func (e TagExpr) Select(targets []Target) (out []Target) {
	numbered := e.hasNumber()
	for _, t := range targets {
		if !e.Match(t.Tags) {
			continue
		}
		t.Attempts = e.attempts(t.Tags)
		if !numbered {
			if t.Chain, t.Number = e.chain(t.Tags); t.Apart && t.Chain == "" && t.Number == 0 && !e.Empty() {
				t.Chain = chainApart
			}
		}
		out = append(out, t)
	}
	return out
}

// chainApart is the chain of targets that are apart. No tag has this name.
const chainApart = " apart"

// hasNumber reports whether a term has a number before it.
func (e TagExpr) hasNumber() bool {
	for _, g := range e.groups {
		for _, t := range g {
			if t.number >= 0 {
				return true
			}
		}
	}
	return false
}

// attempts returns the number of attempts to send a message to a destination
// with these tags, or 0 for the number that its URL asks for.
func (e TagExpr) attempts(tags []string) int {
	for _, g := range e.groups {
		for _, t := range g {
			if t.attempts > 0 && t.match(tags) {
				return t.attempts
			}
		}
	}
	return 0
}

// chain returns the chain of a destination with these tags, and its number
// there. Destinations without a separate chain have the chain "".
func (e TagExpr) chain(tags []string) (chain string, number int) {
	for _, g := range e.groups {
		if len(g) == 1 {
			if n, ok := numberOf(tags, g[0].name); ok {
				return g[0].name, n
			}
		}
	}
	found := false
	for _, g := range e.groups {
		for _, t := range g {
			if n, ok := numberOf(tags, t.name); ok && (!found || n < number) {
				number, found = n, true
			}
		}
	}
	return "", number
}
