package permission

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Grant is one verb on one resource that a role grants. Namespace is that of a Role, empty for a ClusterRole.
type Grant struct {
	Namespace             string
	Verb, Group, Resource string
	// Names are the objects it is limited to; empty for all.
	Names string
}

func (g Grant) String() string {
	text := fmt.Sprintf("%s %s", g.Verb, g.Resource)
	if g.Group != "" {
		text += "." + g.Group
	}
	if g.Namespace != "" {
		text += " in " + g.Namespace
	}
	return text
}

// Grants returns the permissions of a role's rules, one by one, sorted.
func Grants(namespace string, rules []rbacv1.PolicyRule) []Grant {
	var grants []Grant
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					grants = append(grants, Grant{namespace, verb, group, resource, fmt.Sprint(rule.ResourceNames)})
				}
			}
		}
	}
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return grants
}

// Unused returns the grants that none of the calls needed.
func Unused(grants []Grant, calls []Call) []Grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool {
		return slices.ContainsFunc(calls, g.allows)
	})
}

// allows reports whether the grant covers the call. Names are ignored, because it is known that the call was allowed.
func (g Grant) allows(c Call) bool {
	return g.Verb == c.Verb && g.Group == c.Group && g.Resource == c.Resource && (g.Namespace == "" || g.Namespace == c.Namespace)
}
