package sandbox

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs writes the administrator's kubeconfig and one for each component that needs one. The certificates
// are embedded, so the files can be copied.
func writeKubeconfigs(p plan) error {
	if err := os.MkdirAll(p.path("clients"), 0o700); err != nil {
		return err
	}
	for name := range clientSubjects {
		path := p.client(name)
		if name == "admin" {
			path = p.kubeconfig()
		}
		if err := writeKubeconfig(p, path, name); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}

func writeKubeconfig(p plan, path, name string) error {
	var contents [3][]byte
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		content, err := os.ReadFile(p.pki(file))
		if err != nil {
			return err
		}
		contents[i] = content
	}
	config := api.NewConfig()
	config.Clusters["sandbox"] = &api.Cluster{Server: p.server(), CertificateAuthorityData: contents[0]}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	config.Contexts["sandbox"] = &api.Context{Cluster: "sandbox", AuthInfo: name}
	config.CurrentContext = "sandbox"
	unfinished := path + ".unfinished"
	if err := clientcmd.WriteToFile(*config, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// Kubeconfig returns the path of the administrator's kubeconfig of the sandbox in the directory. The sandbox must
// have been started at least once.
func Kubeconfig(dataDir string) (string, error) {
	l, err := absolute(dataDir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(l.kubeconfig()); err != nil {
		return "", fmt.Errorf("no sandbox in %s: `karpenter-sandbox up --data-dir %s` makes one", string(l), string(l))
	}
	return l.kubeconfig(), nil
}

// clientConfig returns the administrator's connection, without client-side rate limits.
func clientConfig(l layout) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}
