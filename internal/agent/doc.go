// Package agent keeps the kernel equal to the plan: it joins the configuration file, the ports connected by command and
// the host's devices into a plan, writes it to the kernel, and follows changes. One goroutine owns all state; commands,
// notifications and the clock reach it as messages. The kernel forwards without it.
//
//layout:floor=process
package agent
