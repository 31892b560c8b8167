package device

import "github.com/caddy-notify/caddy-notify/gateway/site"

// InvitationLink returns the address on which a phone uses an invitation.
func InvitationLink(publicURL, key, token string) string {
	return publicURL + site.PathOf(site.RouteNotifyKey, key) + "?invite=" + token
}
