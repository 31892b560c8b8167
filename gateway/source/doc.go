// Package source reads messages in the formats of other programs: the webhooks of
// monitoring programs, and the APIs of chat and push services.
//
// A [Format] describes the requests of one program: the address of its
// documentation, and the text templates that make a title, a body and a type from
// its payload. The built-in formats are in package programs, which must be imported for
// them to exist. A program calls [Register] in an init function.
//
// A [Source] is a Format with the settings of the operator. Use it in three steps:
//
//	verified, err := s.AuthenticateHeader(req)   // before the body is read
//	err := s.Authenticate(ctx, req, fetch)       // unless verified: signature and token, over the raw body
//	msg, err := s.Read(ctx, req)
//
// A payload is data: nothing in it runs as a template, and of the addresses in it,
// the package fetches only certificates of Amazon SNS. Templates come from the operator,
// and each run of a template has limits on its work and output.
package source
