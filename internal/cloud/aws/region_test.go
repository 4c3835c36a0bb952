package aws

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// The error for a region that does not exist is one line with its name, whether its endpoint has no address or rejects
// the signature.
func TestNoRegion(t *testing.T) {
	w := newWorld(t, "m5.large")
	refused := w.config
	refused.Region = "us-esat-1"
	resolves := func(_ context.Context, _, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	unresolved := aws.Config{Region: "us-esat-1", HTTPClient: &http.Client{Transport: &http.Transport{DialContext: resolves}},
		RetryMaxAttempts: 1,
		Credentials:      credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", "")}
	for name, config := range map[string]aws.Config{"signed for another region": refused, "no address": unresolved} {
		err := Reachable(t.Context(), ClientsOf(config))
		var absent *NoRegionError
		switch {
		case !errors.As(err, &absent):
			t.Errorf("%s: got error %v, want a NoRegionError", name, err)
		case absent.Region != "us-esat-1":
			t.Errorf("%s: the region is %q, want us-esat-1", name, absent.Region)
		case !strings.Contains(err.Error(), `"us-esat-1" does not exist`):
			t.Errorf("%s: got error %q, want it to say that the region does not exist", name, err)
		case len(err.Error()) > 400:
			t.Errorf("%s: the error has %d characters, want at most 400: %v", name, len(err.Error()), err)
		default:
			t.Log(err)
		}
	}
	if err := Reachable(t.Context(), w.clients); err != nil {
		t.Errorf("in the correct region: %v", err)
	}
}
