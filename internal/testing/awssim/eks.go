package awssim

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

func eksMethods() map[string]method {
	return map[string]method{"DescribeCluster": {run: describeCluster, params: []string{"name"}}}
}

// eksAction returns the action of a REST request. GET /clusters/{name} is the only one that is simulated.
func eksAction(verb, path string) string {
	if name, ok := strings.CutPrefix(path, "/clusters/"); ok && verb == http.MethodGet && name != "" && !strings.Contains(name, "/") {
		return "DescribeCluster"
	}
	return verb + " " + path
}

// describeCluster implements eks:DescribeCluster.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
func describeCluster(c *Cloud, r *request, _ time.Time) (any, error) {
	cluster, name := c.opts.Cluster, strings.TrimPrefix(r.path, "/clusters/")
	if name != cluster.Name {
		return nil, &apiError{"ResourceNotFoundException", "No cluster found for name: " + name + ".", http.StatusNotFound}
	}
	network := map[string]any{"ipFamily": "ipv4", "serviceIpv4Cidr": cluster.ServiceCIDR}
	if strings.Contains(cluster.ServiceCIDR, ":") {
		network = map[string]any{"ipFamily": "ipv6", "serviceIpv6Cidr": cluster.ServiceCIDR}
	}
	var subnets []string
	for _, s := range c.subnets {
		if s.vpc == c.subnets[0].vpc {
			subnets = append(subnets, s.id)
		}
	}
	return map[string]any{"cluster": map[string]any{
		"name": cluster.Name, "arn": c.clusterARN(),
		"version": cluster.Version, "endpoint": cluster.Endpoint, "status": "ACTIVE", "platformVersion": "eks.1",
		"certificateAuthority":    map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(cluster.CA))},
		"kubernetesNetworkConfig": network,
		"resourcesVpcConfig": map[string]any{"vpcId": c.subnets[0].vpc, "subnetIds": subnets,
			"clusterSecurityGroupId": c.groups[1].id, "endpointPublicAccess": true},
		"tags": map[string]string{},
	}}, nil
}

func (c *Cloud) clusterARN() string {
	return "arn:aws:eks:" + c.opts.Region + ":" + c.opts.AccountID + ":cluster/" + c.opts.Cluster.Name
}

// SetCluster changes the result of DescribeCluster. Zero fields keep their values.
func (c *Cloud) SetCluster(change Cluster) {
	c.locked(func(time.Time) {
		now := &c.opts.Cluster
		for _, f := range []struct {
			field *string
			value string
		}{{&now.Name, change.Name}, {&now.Endpoint, change.Endpoint}, {&now.CA, change.CA}, {&now.Version, change.Version},
			{&now.ServiceCIDR, change.ServiceCIDR}} {
			if f.value != "" {
				*f.field = f.value
			}
		}
	})
}
