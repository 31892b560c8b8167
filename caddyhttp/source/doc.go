// Package source reads messages in the formats of other programs: webhooks of
// monitoring, and the APIs of chat and push services that programs already
// speak.
//
// A program is described in a file of its own by a [Format]: where its format is
// documented, and text templates that make a title, a body and a type of its
// payload. Adding a program is adding such a file, and samples with the messages
// that must come of them under testdata.
//
// A [Source] is a Format ready for use, with the operator's changes and checks.
// Its steps are
//
//	err := s.Authenticate(ctx, req)   // signature and token, over the raw body
//	msg, err := s.Read(req)
//
// A payload is data: nothing in it is run as a template, and nothing that it
// names is fetched here. Templates come from the operator, and what one run of a
// template can cost is bounded.
package source
