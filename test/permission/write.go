package permission

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// credentialKey is the extra field of a user by which the audit log identifies a token of a service account.
const credentialKey = "authentication.kubernetes.io/credential-id"

// Credential returns the identity of the token in a kubeconfig of Kubeconfig, as the audit log has it.
func Credential(kubeconfig []byte) (string, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("reading a kubeconfig: %w", err)
	}
	for _, auth := range config.AuthInfos {
		parts := strings.Split(auth.Token, ".")
		if len(parts) != 3 {
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return "", fmt.Errorf("reading the token of a kubeconfig: %w", err)
		}
		var claims struct{ JTI string }
		if err := json.Unmarshal(text, &claims); err != nil {
			return "", fmt.Errorf("reading the token of a kubeconfig: %w", err)
		}
		if claims.JTI != "" {
			return "JTI=" + claims.JTI, nil
		}
	}
	return "", fmt.Errorf("the kubeconfig has no token with an identity")
}

// Write is a request that changed something.
type Write struct {
	Call Call
	// At is when the API server received the request, by its clock.
	At time.Time
}

func (w Write) String() string { return w.At.Format(time.RFC3339Nano) + " " + w.Call.String() }

// Writes returns the successful writes with a token, in the order of the audit log. Leases and events are omitted: a
// process that does not lead may write those.
func Writes(path, credential string) ([]Write, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	var writes []Write
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		e := struct {
			event
			User                     struct{ Extra map[string][]string }
			RequestReceivedTimestamp time.Time
			ResponseStatus           struct{ Code int }
		}{}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		call := e.call()
		switch {
		case !slices.Contains(e.User.Extra[credentialKey], credential), e.ResponseStatus.Code >= 300:
		case slices.Contains([]string{"get", "list", "watch"}, e.Verb), call.Resource == "leases", call.Resource == "events":
		default:
			writes = append(writes, Write{Call: call, At: e.RequestReceivedTimestamp})
		}
	}
	return writes, lines.Err()
}
