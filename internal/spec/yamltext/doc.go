// Package yamltext writes YAML that every reader takes as it was meant, also one of YAML 1.1.
//
//layout:floor=words pure
package yamltext
