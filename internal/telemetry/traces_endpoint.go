package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
)

// Variables for traces go before those for all signals.
const (
	allEndpoint    = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	allProtocol    = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// endpointOfTraces returns the URL that the environment wants traces to be sent to, nil for none. It returns an error for
// values that the library would take for another URL: localhost:4318 is a scheme without a host to it.
func endpointOfTraces() (*url.URL, error) {
	name, value := firstSet(tracesEndpoint, allEndpoint)
	if value == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil //nolint:nilnil // nil is none
	}
	set, err := url.Parse(value)
	if err != nil || set.Scheme != "http" && set.Scheme != "https" || set.Hostname() == "" {
		return nil, fmt.Errorf("%s is %q: want http://HOST:PORT or https://HOST:PORT; no traces are sent", name, value)
	}
	to := &url.URL{Scheme: set.Scheme, Host: set.Host, Path: cmp.Or(set.Path, "/")}
	if name == allEndpoint { // a base for the paths of all signals
		to.Path = path.Join("/", set.Path, "v1", "traces")
	}
	return to, nil
}

// checkProtocol returns an error if the environment wants another protocol than the one that is spoken.
func checkProtocol() error {
	if name, value := firstSet(tracesProtocol, allProtocol); value != "" && value != "http/protobuf" {
		return fmt.Errorf("%s is %q: traces are sent as http/protobuf, the only protocol that is spoken", name, value)
	}
	return nil
}

// firstSet returns the first variable that is not empty, and its value without spaces around it.
func firstSet(names ...string) (name, value string) {
	for _, name = range names {
		if value = strings.TrimSpace(os.Getenv(name)); value != "" {
			break
		}
	}
	return name, value
}
