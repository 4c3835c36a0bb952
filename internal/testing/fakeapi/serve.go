package fakeapi

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Running is a server that listens.
type Running struct {
	*Server
	http *httptest.Server
}

// Start serves on an address such as 127.0.0.1:0, by TLS and HTTP/2, as kube-apiserver does.
func Start(s *Server, address string) (*Running, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the API: %w", err)
	}
	running := httptest.NewUnstartedServer(s)
	running.Listener.Close()
	running.Listener, running.EnableHTTP2 = listener, true
	running.StartTLS()
	return &Running{s, running}, nil
}

// Close ends all watches and connections.
func (r *Running) Close() {
	r.CloseWatches(false)
	r.http.CloseClientConnections()
	r.http.Close()
}

// URL returns where it serves.
func (r *Running) URL() string { return r.http.URL }

// Kubeconfig returns a kubeconfig whose requests are counted under the name of the client.
func (r *Running) Kubeconfig(name string) ([]byte, error) {
	made := api.NewConfig()
	made.Clusters["fake"] = &api.Cluster{Server: r.URL(),
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.http.Certificate().Raw})}
	made.AuthInfos["fake"] = &api.AuthInfo{Token: name}
	made.Contexts["fake"] = &api.Context{Cluster: "fake", AuthInfo: "fake"}
	made.CurrentContext = "fake"
	return clientcmd.Write(*made)
}
