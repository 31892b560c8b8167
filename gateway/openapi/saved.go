package openapi

import "net/http"

// ofSavedKey adds the answers of all requests that change or show a saved key.
func ofSavedKey(own map[int]Answer) map[int]Answer {
	own[http.StatusForbidden] = result(savedForbidden)
	own[http.StatusNotFound] = result(noSuchKey)
	own[http.StatusServiceUnavailable] = result(storageUnusable)
	return own
}

// Add describes /add/{KEY}.
func Add() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "saveKey", Tag: ofConfiguration,
		Summary: "Save the configuration of a key",
		Description: "It replaces the configuration that the key has. If it has a mistake, the answer names the line, and the saved " +
			"configuration stays as it is. URLs of retired services are left out with a warning.",
		Body: &Body{Required: true, Content: map[string]Media{
			mediaJSON: {Schema: bodyOf("SavedConfig")},
			mediaForm: {Schema: bodyOf("SavedConfig")},
			mediaText: {Schema: text()},
		}},
		Answers: map[int]Answer{
			http.StatusOK: says("The configuration is saved or, with `check`, checked.",
				recordsOr(Schema{"anyOf": []Schema{bodyOf("Answer"), bodyOf("CheckedConfig")}}, bodyOf("ResultLines"))),
			http.StatusBadRequest:            result("The request or the configuration has a mistake, or there are too many keys or URLs."),
			http.StatusForbidden:             result(savedForbidden),
			http.StatusNotFound:              result("The name of the key is malformed."),
			http.StatusRequestEntityTooLarge: result("The configuration is too large."),
			http.StatusServiceUnavailable:    result(storageUnusable),
		},
	}}}
}

// CheckQuery describes ?check of /add/{KEY}.
func CheckQuery() *Parameter {
	p := inQuery("check", oneOf("", "local"),
		"Saves nothing, and returns every mistake with its line. With the value `local`, files that the configuration includes are not fetched.")
	return &p
}

// TestQuery describes ?test of /cfg/{KEY}.
func TestQuery() *Parameter {
	return &Parameter{
		Name: "test", In: "query", Required: true, MayBeEmpty: true, Description: "A parameter without a value.",
		Schema: Schema{"type": "string", "maxLength": 0},
	}
}

// Get describes /get/{KEY}.
func Get() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "getKey", Tag: ofConfiguration,
		Summary:     "Read the configuration of a key",
		Description: "`POST /cfg/{KEY}` is the same.",
		Answers: ofSavedKey(map[int]Answer{
			http.StatusOK: says("The configuration.", map[string]Schema{
				mediaText: described(text(), "The configuration as it was saved. The media type is `text/yaml` for YAML."),
				mediaJSON: object(Schema{
					"format": oneOf("text", "yaml"),
					"config": text(),
				}, "format", "config"),
			}),
		}),
	}}}
}

// Del describes /del/{KEY}.
func Del() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "deleteKey", Tag: ofConfiguration,
		Summary: "Delete the configuration of a key",
		Answers: ofSavedKey(map[int]Answer{http.StatusOK: result("The configuration is deleted.")}),
	}}}
}

// Move describes /move/{KEY}.
func Move() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "moveKey", Tag: ofConfiguration,
		Summary: "Give a saved key another name",
		Description: "What belongs to the key stays with it: its tokens, devices, silences, incidents and inbox, and what waits for its " +
			"destinations. Clients do not find it under the old name any more.",
		Body: forms(bodyOf("NewName"), mediaJSON, mediaForm),
		Answers: ofSavedKey(map[int]Answer{
			http.StatusOK:                    result("The key has the new name."),
			http.StatusBadRequest:            result("The new name is missing, malformed or reserved, or the key has it already."),
			http.StatusConflict:              result("Another saved key has the new name."),
			http.StatusRequestEntityTooLarge: result("The request is larger than 8 KiB."),
		}),
	}}}
}

// Keys describes /cfg.
func Keys() About {
	unread := recordsOr(bodyOf("Answer"), bodyOf("ResultLines"))
	delete(unread, mediaHTML) // a browser is redirected to the console before they are read
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "listKeys", Tag: ofConfiguration,
		Summary: "List the saved keys",
		Answers: map[int]Answer{
			http.StatusOK:                 says("The keys.", map[string]Schema{mediaJSON: listOf(text())}),
			http.StatusSeeOther:           redirected(),
			http.StatusForbidden:          result(savedForbidden),
			http.StatusServiceUnavailable: says(storageUnusable, unread),
		},
	}}}
}

// SavedKey describes /cfg/{KEY}.
func SavedKey() About {
	return About{
		Key: "The name of a saved key, or of a key in the gateway's configuration. Upper and lower case differ.",
		Operations: []Operation{{
			Method: http.MethodPost, ID: "testDestination", Tag: ofConfiguration,
			Summary: "Send a test message to one destination of a key",
			Description: "The message goes to that destination alone, under the rules of the key, in one attempt that does not use the queue. " +
				"Without `?test`, the request is that of `/get/{KEY}`.",
			Body: forms(bodyOf("TestOfDestination"), mediaForm),
			Answers: map[int]Answer{
				http.StatusOK: result("The destination has accepted the message. A page and a stream have the status 200 in " +
					"every case: the page shows the result, and the last line of the stream has the status.").streamed(),
				http.StatusBadRequest: result("There is no such destination, or the URL cannot be used."),
				http.StatusForbidden: result("Saved keys cannot be managed here or by this client, the pages are turned off, or a " +
					"page of another site sent the request."),
				http.StatusNotFound:              result(noSuchKey),
				http.StatusRequestTimeout:        result("The request took too long to arrive."),
				http.StatusConflict:              result("The key has changed, and this number belongs to another destination now."),
				http.StatusRequestEntityTooLarge: result("The request is larger than 512 KiB."),
				http.StatusFailedDependency: says("The destination does not have the message. The error says why.", map[string]Schema{
					mediaText: bodyOf("Lines"),
					mediaJSON: bodyOf("Answer"),
				}),
				http.StatusServiceUnavailable: result("Too many messages are under way, or the storage of saved keys cannot be read; try again " +
					"after `Retry-After`."),
			},
		}},
	}
}

// Token describes /cfg/{KEY}/token.
func Token() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "addToken", Tag: ofConfiguration,
		Summary:     "Make a further token of a saved key",
		Description: "From then on, the key needs a token. The answer shows the new one; only its hash is stored. A key has at most 10.",
		Answers: ofSavedKey(map[int]Answer{
			http.StatusOK: says("The token, as text, as JSON, or for browsers on a page.", map[string]Schema{
				mediaText: text(),
				mediaJSON: object(Schema{
					"token": text(),
					"count": Schema{"type": "integer", "description": "How many tokens the key has now."},
				}, "token", "count"),
				mediaHTML: bodyOf("Page"),
			}, "Cache-Control"),
			http.StatusBadRequest: result("The key has 10 tokens; remove the older ones first."),
		}),
	}, {
		Method: http.MethodDelete, ID: "removeOldTokens", Tag: ofConfiguration,
		Summary: "Remove all tokens of a saved key but the newest",
		Answers: ofSavedKey(map[int]Answer{http.StatusOK: result("The older tokens are removed.")}),
	}}}
}

// URLs describes /json/urls/{KEY}.
func URLs() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodGet, ID: "listURLs", Tag: ofConfiguration,
		Summary: "List the destinations of a key, with their secrets masked",
		Description: "Works for saved keys and for keys in the gateway's configuration. A key that has tokens or readers shows its " +
			"destinations to its readers, and to those who may manage saved keys.",
		Parameters: []any{inQuery("tag", text(), "A tag expression that chooses among the destinations. Without it, all are listed.")},
		Answers: map[int]Answer{
			http.StatusOK:         says("The destinations.", map[string]Schema{mediaJSON: bodyOf("SavedDestinations")}),
			http.StatusBadRequest: result("The tag expression is malformed."),
			http.StatusUnauthorized: unauthorized("The key has a token or a reader and this needs a reader, or one of the keys does and " +
				"this key does not exist."),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result(storageUnusable),
		},
	}}}
}

// Status describes /status.
func Status() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "getStorage", Tag: ofConfiguration,
		Summary: "Check the storage of saved keys",
		Answers: map[int]Answer{
			http.StatusOK:                storage("The storage works. The text is `OK`."),
			http.StatusExpectationFailed: storage("The storage cannot be read or written."),
		},
	}}}
}

// StatusOfKey describes /status/{KEY}.
func StatusOfKey() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodGet, ID: "getStorageOfKey", Tag: ofConfiguration,
		Summary:     "Check the storage of saved keys, for a client of a key",
		Description: "The answer is the same as at `/status`. It does not tell whether the key exists.",
		Answers: map[int]Answer{
			http.StatusOK:                storage("The storage works. The text is `OK`."),
			http.StatusUnauthorized:      unauthorized(needsToken),
			http.StatusExpectationFailed: storage("The storage cannot be read or written."),
		},
	}}}
}

const needsToken = "The key needs a token, or one of the keys does and this key does not exist."

// storage returns an answer with the state of the storage.
func storage(description string) Answer {
	return says(description, map[string]Schema{mediaText: text(), mediaJSON: bodyOf("StorageState")}).called("Storage")
}

// QR describes /qr/{KEY}.
func QR() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "getAppAddress", Tag: ofConfiguration,
		Summary:     "The address of a key for Apprise Mobile",
		Description: "For the QR code on the page of a key. It has no secret.",
		Answers: map[int]Answer{
			http.StatusOK: says("The `apprise://` URL. An `@` alone stands for a token of the key, and `:NAME@` for a login of the site.",
				map[string]Schema{
					mediaJSON: object(Schema{
						"url":                    text(),
						"uses_admin_credentials": described(Schema{"type": "boolean"}, "The URL needs the login of the site."),
					}),
				}),
			http.StatusUnauthorized: unauthorized(needsToken),
			http.StatusNotFound:     result(noSuchKey),
		},
	}}}
}

// Details describes /details.
func Details() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "getDetails", Tag: ofConfiguration,
		Summary:    "The version of the gateway and its services",
		Parameters: []any{inQuery("all", text(), "`yes` also lists the services that the site does not allow. Then each has `enabled`.")},
		Answers: map[int]Answer{
			http.StatusOK: says("The version, the services as `schemas`, and the identity of the site as `asset`.",
				map[string]Schema{mediaJSON: bodyOf("Details")}),
		},
	}}}
}
