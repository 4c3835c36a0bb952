package awssim

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// policy denies launches unless one of the values matches a condition key, like an organization's policy with a Deny on
// ec2:RunInstances and StringNotLike.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html#amazonec2-policy-keys
type policy struct {
	key    string
	values []string
}

// Condition keys of launches for policies.
const (
	ConditionEncrypted    = "ec2:Encrypted"          // true or false, for each volume
	ConditionTokens       = "ec2:MetadataHttpTokens" // required or optional
	ConditionInstanceType = "ec2:InstanceType"
)

// DenyUnless denies launches, by RunInstances and by fleets, for which a condition key has none of the values. "*"
// stands for any characters. Without values, the policies on the key are removed.
func (c *Cloud) DenyUnless(key string, values ...string) error {
	if !slices.Contains([]string{ConditionEncrypted, ConditionTokens, ConditionInstanceType}, key) {
		return fmt.Errorf("condition key %q: must be %s, %s or %s", key, ConditionEncrypted, ConditionTokens, ConditionInstanceType)
	}
	c.locked(func(time.Time) {
		c.policies = slices.DeleteFunc(c.policies, func(p policy) bool { return p.key == key })
		if len(values) > 0 {
			c.policies = append(c.policies, policy{key, values})
		}
	})
	return nil
}

// policyDenies reports whether a policy denies a launch. The caller holds the lock.
func (c *Cloud) policyDenies(o *override) bool {
	for _, p := range c.policies {
		for _, value := range c.conditionOf(o, p.key) {
			if !slices.ContainsFunc(p.values, func(pattern string) bool { return wildcard(pattern, value) }) {
				return true
			}
		}
	}
	return false
}

// conditionOf returns the values of a condition key in a launch: several if the key is for volumes, each of which is
// checked. A volume that the launch does not mention is encrypted like the image's snapshot, and none is here.
func (c *Cloud) conditionOf(o *override, key string) []string {
	switch key {
	case ConditionInstanceType:
		return []string{o.name}
	case ConditionTokens:
		return []string{o.spec.metadata["HttpTokens"]}
	}
	imageID := o.image
	defaultTo(&imageID, o.spec.image)
	encrypted := map[string]bool{}
	if i := c.image(imageID); i != nil {
		for _, d := range i.devices {
			encrypted[d.name] = false
		}
	}
	for _, d := range o.spec.devices {
		encrypted[d.name] = d.encrypted
	}
	var values []string
	for _, name := range sortedKeys(encrypted) {
		values = append(values, strconv.FormatBool(encrypted[name]))
	}
	return values
}
