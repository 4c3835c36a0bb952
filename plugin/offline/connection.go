package offline

import (
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Connection selects the cluster, with kubectl's flags.
type Connection struct {
	Kubeconfig, Context string
	// Namespace is the value of --namespace, "" for the namespace of the kubeconfig's context.
	Namespace string
	// Loader, if it is set, returns the configuration for more flags than the above, and whether they name a server.
	Loader func() (loader clientcmd.ClientConfig, server bool)
	// Version is that of the program, for the user agent.
	Version string
}

func (c *Connection) loader() (loader clientcmd.ClientConfig, server bool) {
	if c.Loader != nil {
		return c.Loader()
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context, Context: clientcmdapi.Context{Namespace: c.Namespace}}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), false
}

// Config returns the connection to the cluster.
func (c *Connection) Config() (*rest.Config, error) {
	loader, server := c.loader()
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) || err == nil && !server && config.Host == clientcmd.ClusterDefaults.Server {
		return nil, noCluster()
	}
	if err != nil {
		return nil, inputErrorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	config.UserAgent = "karpenter/" + c.Version
	return config, nil
}

// noCluster is the error that no configuration was found.
func noCluster() error {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" {
		return inputErrorf("no cluster: KUBECONFIG is %s, which has none: want an existing file with a context, or --kubeconfig FILE", files)
	}
	return inputErrorf("no cluster: give --kubeconfig FILE or set KUBECONFIG, or run inside a cluster")
}

// Name is the name of the context, "" if there is none.
func (c *Connection) Name() string {
	loader, _ := c.loader()
	if raw, err := loader.RawConfig(); c.Context == "" && err == nil {
		return raw.CurrentContext
	}
	return c.Context
}

// Home is the namespace of objects without one: --namespace, else that of the context, else default.
func (c *Connection) Home() string {
	loader, _ := c.loader()
	if namespace, _, err := loader.Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return corev1.NamespaceDefault
}
