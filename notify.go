// Package notify is a notification gateway for Caddy. A client posts one
// message over HTTP; the gateway sends it to every destination that a
// notification URL describes: chat, mail, SMS, push, incident tools, webhooks.
//
// Import it for its effect, as xcaddy does:
//
//	xcaddy build --with github.com/caddy-notify/caddy-notify
//
// This adds the notify directive and the notify global option:
//
//	alerts.example.com {
//		notify {
//			key ops {
//				url {env.DISCORD_URL} urgent
//				url {env.MAIL_URL}
//			}
//		}
//	}
//
// POST /notify/ops then sends to the destinations of the key ops, filtered
// by the request's tag:
//
//	curl -d "body=disk 91% full" -d tag=urgent https://alerts.example.com/notify/ops
//
// POST /notify sends to the URLs in the request:
//
//	curl -d "body=disk 91% full" -d "urls=ntfy://ntfy.sh/topic" https://alerts.example.com/notify
//
// The response has status 200 if every destination accepted the message.
//
// The main packages are
//
//   - caddyhttp: everything that uses Caddy: the handler, its Caddyfile, the app
//   - caddyhttp/command: the commands, caddy notify
//   - notifier: everything about notifications, without Caddy
//   - notifier/services: the catalogue, one small file or package for each service
//   - notifier/servicetest: golden files and test servers, for tests of services
//
// Other packages can add a service to a build with notifier.Register.
package notify

import (
	_ "github.com/caddy-notify/caddy-notify/caddyhttp"
	_ "github.com/caddy-notify/caddy-notify/caddyhttp/command"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)
