// Package notifier sends messages to destinations that notification URLs
// describe.
//
// One call sends a message:
//
//	import (
//		"github.com/caddy-notify/caddy-notify/notifier"
//		_ "github.com/caddy-notify/caddy-notify/notifier/services"
//	)
//
//	err := notifier.Send(ctx, "discord://id/token", &notifier.Message{Title: "Backup", Body: "done"})
//
// [Send] has the rest: several URLs, time, and errors that say what has failed and whether to try
// again. A [Sender] is for programs with limits, policies, sessions or a log of their own.
//
// # What a program needs
//
// Nothing of Caddy: no package of it is in a program that imports this one. With all services, 24
// other modules are. A program for Linux on amd64 whose main function is one call of Send has
// 15.4 MB with all services, and 9.4 MB and 7 other modules with services/slack alone. One with a call of
// http.Post has 5.8 MB (Go 1.26, -trimpath -ldflags "-s -w").
//
// # Stability
//
// From version 0.1.0, the API of these packages is kept: notifier, notifier/egress,
// notifier/services (its import and its URLs), notifier/servicetest, and notifier/queue with
// notifier/queue/queuetest for stores. A patch release changes none of it. Before 1.0, a minor
// release may remove what the release before has marked as deprecated, and says so in the
// changelog; an interface that others implement changes in the same way. All other packages of the
// module may change in any release.
//
// # The model
//
// A [Message] has a title, a body in plain text, Markdown or HTML, a type and
// attachments. It does not know where it goes.
//
// A [Destination] is a parsed URL such as
//
//	gotifys://push.example.com/AbCdEf?priority=high
//
// It consists of a service, here Gotify, and the values of the service's
// parameters. It also holds what the service keeps between messages, such as
// a session.
//
// A [Service] is a struct that declares its URLs and parameters in a [Schema]
// and sends one message with a [Client]. Everything else is derived from the
// schema: parsing, validation, the canonical form of a URL, masking of secrets,
// error texts and the documentation of the catalogue. [Register] adds a service
// to the program; package services has those that come with it.
//
// A [Sender] sends one message to many destinations at once and reports a
// [Result] for each. It lives as long as the process and limits the deliveries
// under way.
//
// # From a URL to a request
//
// [Parse], or [Sender.Parse] for a destination that several configurations
// share, works in these steps:
//
//  1. The scheme selects a service. A web address (https://…) selects the
//     service that gives out addresses of that form, such as webhooks.
//  2. A template of the service's schema takes the URL apart. The query sets
//     all other parameters, and can set the template's as well.
//  3. Each value is checked and assigned to its field of the service. The
//     parameters that every service has (format, overflow, retry, rto and so
//     on) are assigned to the destination.
//  4. If the service is a [Finisher], it checks the values against each other.
//
// [Sender.Send] then makes a delivery for each destination:
//
//  1. It waits for a free slot.
//  2. It renders the message in the destination's format. If the service has no
//     titles, the title becomes the first line of the body.
//  3. It divides the message into parts within the service's limits, as the
//     parameter overflow says.
//  4. It calls the service's Send for each part. The service makes requests with
//     [Client.Do]. The client adds what the URL says about timeouts,
//     redirects and certificates, and dials only addresses that the policy of
//     the destination allows (see package egress).
//  5. After a failure it tries again as often as the parameter retry says, or
//     when the destination asks for it. [Steps] keep it from repeating what has
//     arrived. If the destination refuses the message for its length or its
//     files, it gets as much of the message as possible.
//  6. It reports the result. A result that failed has a [Progress], with which
//     a later delivery, also of another process, continues.
//
// # Files
//
// Names of files begin with what they are about: message_ what is sent; schema_ what a
// service declares, and registry, catalogue, search, recognize what can be asked of all
// services; url_ how a URL becomes values and back; destination_ a parsed URL; tags_ which
// targets a request means; sender_ the options, slots and limits of a Sender, sending_ one
// message on its way to several targets, delivery_ to one of them; client_ and body_ the
// requests; dry_run_ what would be sent.
//
// They are one package, because Service, Schema, Destination and Client are defined by each
// other, and because whoever writes a service then imports one.
//
// # Secrets
//
// Parameters that are secret are declared once, in the schema. They are masked
// in everything that this package returns for people: [Destination.String],
// errors, results, records and log entries.
package notifier
