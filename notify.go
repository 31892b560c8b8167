// Package notify is a notification gateway for Caddy. A client posts one
// message over HTTP; the gateway sends it to every destination that a
// notification URL describes: chat, mail, SMS, push, incident tools, webhooks.
//
// Import it for its effect, as xcaddy does:
//
//	xcaddy build --with github.com/caddy-notify/caddy-notify
//
// That adds the directive notify and the global option of the same name:
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
// With it, POST /notify/ops sends to the destinations of the key ops, filtered
// by the request's tag:
//
//	curl -d "body=disk 91% full" -d tag=urgent https://alerts.example.com/notify/ops
//
// and POST /notify sends to the URLs that the request itself brings:
//
//	curl -d "body=disk 91% full" -d "urls=ntfy://ntfy.sh/topic" https://alerts.example.com/notify
//
// The answer has status 200 when every destination has taken the message.
//
// The packages below this one are
//
//   - caddyhttp: everything that knows Caddy: the handler, its Caddyfile, the app
//   - notifier: everything that knows notifying, and nothing of Caddy
//   - notifier/services: the catalogue, one small file or package a service
//   - notifier/servicetest: golden files and stand-ins for servers, for tests of services
//
// Somebody else's package can add a service to a build with notifier.Register.
package notify

import (
	// Destinations may show times in the zone that their URL names, also on
	// machines without a zone database.
	_ "time/tzdata"

	_ "github.com/caddy-notify/caddy-notify/caddyhttp"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)
