// Package api is the HTTP API of the notification gateway, without Caddy: it
// reads a request into a message and its destinations, and writes the report
// of the deliveries as the response.
//
// A handler takes one request through these steps:
//
//	req, err := api.Read(w, r, limits)
//	if err != nil {
//		return err
//	}
//	defer req.Close()
//	msg, err := req.Message()                     // title, body, type, format
//	sel, err := req.SelectURLs(parse, fallback)   // or req.SelectTags
//	err = sel.Check(msg)                          // and again with the attachments
//	msg.Attachments, err = req.Attachments(ctx, pool)
//	sel.Warn(req.LinkFiles(msg)...)
//	report := sel.Report(sender.Send(ctx, msg, sel.Targets, options))
//	api.NewResponse(report).Write(w, r)
//
// The Request owns everything that one request allocates, and Close releases
// it: the text of the body, the temporary files of attachments, and the
// destinations made from the client's URLs.
//
// Each step returns an [*Error] if the client can correct what is wrong. It
// holds the HTTP status and a sentence for the client. Any other error is a
// fault of the gateway, such as a full disk.
package api
