package matrix

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestConversation checks that events go only to rooms that the user is in, and
// link only to uploaded files.
func TestConversation(t *testing.T) {
	servicetest.Converse(t, func(have func(string, ...any)) servicetest.API {
		rooms, joined, files := map[string]string{
			"#ops:example.org": "!1:example.org", "!2:example.org": "!2:example.org", "!old:example.org": "!old:example.org",
		}, map[string]bool{}, map[string]bool{}
		return func(q *http.Request, body string) (int, string) {
			path := strings.Split(strings.TrimPrefix(q.URL.Path, "/_matrix/client/v3/"), "/")
			var in struct{ Body, URL, Room_Alias_Name string }
			_ = json.Unmarshal([]byte(body), &in)
			switch {
			case q.Header.Get("Authorization") != "Bearer tok3n":
				return 401, `{"errcode":"M_UNKNOWN_TOKEN"}`
			case path[0] == "account":
				return 200, `{"user_id":"@ann:example.org"}`
			case q.URL.Path == "/_matrix/media/v3/upload":
				if body != string(servicetest.Picture) {
					return 400, `{"errcode":"M_BAD_JSON"}`
				}
				address := "mxc://example.org/" + q.URL.Query().Get("filename")
				files[address] = true
				return 200, fmt.Sprintf(`{"content_uri":%q}`, address)
			case path[0] == "join" && path[1] == "#closed:example.org":
				return 403, `{"errcode":"M_FORBIDDEN","error":"You are not invited to this room."}`
			case path[0] == "join" && rooms[path[1]] == "":
				return 404, `{"errcode":"M_NOT_FOUND"}`
			case path[0] == "join":
				joined[rooms[path[1]]] = true
				return 200, fmt.Sprintf(`{"room_id":%q}`, rooms[path[1]])
			case path[0] == "createRoom":
				have("create %s", in.Room_Alias_Name)
				joined["!new:example.org"] = true
				return 200, `{"room_id":"!new:example.org"}`
			case path[0] == "joined_rooms":
				return 200, `{"joined_rooms":["!old:example.org"]}`
			case path[0] != "rooms" || !joined[path[1]]:
				return 403, `{"errcode":"M_FORBIDDEN","error":"User not in room."}`
			case path[2] == "state":
				return 404, `{"errcode":"M_NOT_FOUND"}`
			case in.URL != "" && !files[in.URL]:
				return 404, `{"errcode":"M_NOT_FOUND"}`
			}
			have("%s %.6s%s", path[1], in.Body, in.URL)
			return 200, `{"event_id":"$1"}`
		}
	}, []servicetest.Conversation{
		{
			Name: "an alias and an id, with a file", URL: "matrix://tok3n@example.org/#ops/!2", Files: []string{"1.png"},
			Want: []string{
				"!1:example.org # Disk", "!1:example.org 1.pngmxc://example.org/1.png",
				"!2:example.org # Disk", "!2:example.org 1.pngmxc://example.org/1.png",
			},
		},
		{Name: "an alias that nobody has", URL: "matrix://tok3n@example.org/#new", Want: []string{"!new:example.org # Disk", "create new"}},
		{Name: "all rooms", URL: "matrix://tok3n@example.org?mode=off", Want: []string{"!old:example.org # Disk"}},
		{
			Name: "a closed room keeps no other from it", URL: "matrix://tok3n@example.org/#closed/#ops",
			Err: "not invited", Want: []string{"!1:example.org # Disk"},
		},
		{Name: "a token that was withdrawn", URL: "matrix://old@example.org/#ops", Err: "M_UNKNOWN_TOKEN"},
	})
}
