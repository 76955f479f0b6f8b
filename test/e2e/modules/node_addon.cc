// An extension of Node.js: JavaScript that V8 has compiled calls it, is called by it and throws through it.
#include <node_api.h>

#define STEADY __attribute__((noipa))

STEADY double leaf(double x) { return x + 1; }
STEADY double twice(double x) { return leaf(x) + leaf(x + 1); }

// twice(number)
STEADY static napi_value call_twice(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument = nullptr;
  napi_value result = nullptr;
  double x = 0;
  napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr);
  napi_get_value_double(env, argument, &x);
  napi_create_double(env, twice(x), &result);
  return result;
}

// through(function, number)
STEADY static napi_value call_through(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2] = {};
  napi_value self = nullptr;
  napi_value result = nullptr;
  napi_get_cb_info(env, info, &count, arguments, &self, nullptr);
  return napi_call_function(env, self, arguments[0], 1, &arguments[1], &result) == napi_ok ? result : nullptr;
}

NAPI_MODULE_INIT() {
  napi_value function = nullptr;
  napi_create_function(env, "twice", NAPI_AUTO_LENGTH, call_twice, nullptr, &function);
  napi_set_named_property(env, exports, "twice", function);
  napi_create_function(env, "through", NAPI_AUTO_LENGTH, call_through, nullptr, &function);
  napi_set_named_property(env, exports, "through", function);
  return exports;
}
